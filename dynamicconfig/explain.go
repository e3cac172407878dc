package dynamicconfig

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/taskring/taskring/partition"
)

// Explanation says which value a setting has somewhere, and why.
type Explanation struct {
	Key        string
	Value      string // in force
	Default    string
	IsDefault  bool        // no entry holds
	Candidates []Candidate // all entries of the setting, the narrowest that hold first
	Gradual    string      // where a gradual change stands for the task queue; empty for other settings
}

// Candidate is an entry that might have won.
type Candidate struct {
	Entry Entry
	Holds bool   // its constraints are met
	Wins  bool   // its value is in force
	Why   string // it wins or does not
}

// Explain tells which entry gives a setting its value for a queue, or for a
// namespace when the name is empty. now matters to gradual changes only, which it
// judges by the key of the queue, see [QueueKey].
func (s *Snapshot) Explain(def *Definition, q partition.Queue, now time.Time) Explanation {
	value, winner := s.resolve(def, q)
	x := Explanation{
		Key: def.about.Key, Value: def.typ.formatAny(value), Default: def.about.Default, IsDefault: winner < 0,
	}
	if change, ok := value.(flipping); ok && q.Name != "" {
		x.Gradual = explainGradual(change, QueueKey(q), now)
	}
	if s == nil {
		return x
	}
	for i, e := range s.entries {
		if e.def == def {
			x.Candidates = append(x.Candidates, Candidate{Entry: e.show(), Holds: e.Hold(q), Wins: i == winner})
		}
	}
	slices.SortStableFunc(x.Candidates, func(a, b Candidate) int {
		return cmp.Or(
			-cmp.Compare(truth(a.Holds), truth(b.Holds)),
			-cmp.Compare(a.Entry.Constraints.rank(), b.Entry.Constraints.rank()),
		)
	})
	for i := range x.Candidates {
		x.Candidates[i].Why = why(x.Candidates[i], x.Candidates[0].Entry.Constraints)
	}
	return x
}

func why(c Candidate, winner Constraints) string {
	switch {
	case c.Wins && c.Entry.Constraints == Constraints{}:
		return "it holds everywhere, and nothing narrower holds here"
	case c.Wins:
		return "its constraints are met, and it is the narrowest such entry"
	case c.Holds:
		return fmt.Sprintf("its constraints are met, but %v is narrower", winner)
	default:
		return "its constraints are not met"
	}
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// flipping is a [Gradual] without its Go type.
type flipping interface {
	// When is that of Gradual.
	When(key string) (time.Time, bool)
	// Changed is that of Gradual.
	Changed(key string, now time.Time) bool
}

func explainGradual(change flipping, key string, now time.Time) string {
	state := "old"
	if change.Changed(key, now) {
		state = "new"
	}
	when, changes := change.When(key)
	switch {
	case !changes:
		return fmt.Sprintf("key %s has the %s value, whatever the time", key, state)
	case state == "old":
		return fmt.Sprintf("key %s has the old value until %s", key, when.UTC().Format(time.RFC3339))
	default:
		return fmt.Sprintf("key %s has the new value since %s", key, when.UTC().Format(time.RFC3339))
	}
}
