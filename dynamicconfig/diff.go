package dynamicconfig

import (
	"cmp"
	"slices"

	"github.com/taskring/taskring/partition"
)

// Change is what became of an entry from one snapshot to the next.
type Change string

// The changes.
const (
	Added   Change = "added"
	Removal Change = "removed"
	Changed Change = "changed"
)

// Difference is an entry that two snapshots do not share.
type Difference struct {
	Key         string
	Constraints Constraints
	Change      Change
	// Old and New are what was and is in force where the constraints hold and
	// nothing narrower does, also when that comes from another entry or is the
	// default. They can be equal for an entry that was added or removed.
	Old, New string
}

// place is where an entry stands.
type place struct {
	def *Definition
	Constraints
}

// Diff returns what differs between two snapshots, by key, then from the widest
// constraints to the narrowest. Either may be nil.
func Diff(before, after *Snapshot) []Difference {
	was, is := before.places(), after.places()
	var found []Difference
	for at, value := range is {
		earlier, ok := was[at]
		switch {
		case !ok:
			found = append(found, differ(at, Added, before, after))
		case !at.def.typ.equalAny(earlier, value):
			found = append(found, differ(at, Changed, before, after))
		}
	}
	for at := range was {
		if _, ok := is[at]; !ok {
			found = append(found, differ(at, Removal, before, after))
		}
	}
	slices.SortFunc(found, func(a, b Difference) int {
		return cmp.Or(
			cmp.Compare(a.Key, b.Key),
			cmp.Compare(a.Constraints.rank(), b.Constraints.rank()),
			cmp.Compare(a.Constraints.String(), b.Constraints.String()),
		)
	})
	return found
}

func (s *Snapshot) places() map[place]any {
	if s == nil {
		return nil
	}
	values := make(map[place]any, len(s.entries))
	for _, e := range s.entries {
		values[place{e.def, e.Constraints}] = e.value
	}
	return values
}

func differ(at place, change Change, before, after *Snapshot) Difference {
	d := Difference{Key: at.def.about.Key, Constraints: at.Constraints, Change: change}
	was, _ := before.resolve(at.def, at.Queue())
	is, _ := after.resolve(at.def, at.Queue())
	d.Old, d.New = at.def.typ.formatAny(was), at.def.typ.formatAny(is)
	return d
}

// resolve returns the value of a setting for a queue and the index of the entry
// that it comes from, -1 for the default.
func (s *Snapshot) resolve(def *Definition, q partition.Queue) (any, int) {
	if s == nil {
		return def.typ.resolve(nil, q)
	}
	return def.typ.resolve(s.rules[def], q)
}
