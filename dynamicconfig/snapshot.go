package dynamicconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// hashBytes is how much of the SHA-256 names a snapshot.
const hashBytes = 8

// Snapshot is the values of all settings at one time. It is immutable. Nil is
// the snapshot of all defaults.
type Snapshot struct {
	rules    map[*Definition]any // *rules[T]
	entries  []entry             // index is the place
	hash     string
	warnings Problems
}

// Override is a value for a setting that comes from no file.
type Override struct {
	def         *Definition
	constraints Constraints
	value       any
}

// With gives the setting a value.
func (s *GlobalSetting[T]) With(value T) Override {
	return Override{def: s.def, value: value}
}

// With gives the setting a value for a namespace, or for all that have no value
// of their own when it is empty.
func (s *NamespaceSetting[T]) With(value T, namespace string) Override {
	return Override{s.def, Constraints{Namespace: namespace}, value}
}

// With gives the setting a value under constraints.
func (s *QueueSetting[T]) With(value T, under Constraints) Override {
	return Override{s.def, under, value}
}

// SamePlace reports whether two overrides concern the same setting under the same
// constraints, whatever their values.
func (o Override) SamePlace(as Override) bool {
	return o.def == as.def && o.constraints == as.constraints
}

// NewSnapshot returns a snapshot of overrides, for tests and for programs that
// keep their settings elsewhere. It refuses, all at once, what a file would be
// refused for.
func NewSnapshot(overrides ...Override) (*Snapshot, error) {
	var errs []error
	seen := map[Override]bool{} // without the values
	entries := make([]entry, 0, len(overrides))
	for _, o := range overrides {
		at := Override{def: o.def, constraints: o.constraints}
		if seen[at] {
			errs = append(errs, fmt.Errorf("%s: a second value for %v", o.def.about.Key, o.constraints))
		}
		seen[at] = true
		for _, err := range []error{o.constraints.check(o.def.about.Scope), o.def.typ.checkAny(o.value)} {
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", o.def.about.Key, err))
			}
		}
		entries = append(entries, entry{def: o.def, Constraints: o.constraints, value: o.value})
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return newSnapshot(entries, hashOf(entries), nil), nil
}

func newSnapshot(entries []entry, hash string, warnings Problems) *Snapshot {
	s := &Snapshot{rules: map[*Definition]any{}, entries: entries, hash: hash, warnings: warnings}
	grouped := map[*Definition][]entry{}
	for i := range entries {
		entries[i].index = int32(i)
		grouped[entries[i].def] = append(grouped[entries[i].def], entries[i])
	}
	for def, own := range grouped {
		s.rules[def] = def.typ.compile(own)
	}
	return s
}

// Hash names the content: 16 hexadecimal digits, with which `sha256sum FILE`
// begins for a snapshot of a file. Nil has none.
func (s *Snapshot) Hash() string {
	if s == nil {
		return ""
	}
	return s.hash
}

// Warnings returns what the file should be rid of although it is accepted, by place.
func (s *Snapshot) Warnings() Problems {
	if s == nil {
		return nil
	}
	return slices.Clone(s.warnings)
}

// Entry is a value that a snapshot holds, for people.
type Entry struct {
	Key         string
	Constraints Constraints
	Value       string // as in a file, on one line
	Line        int    // where the value stands; 0 when it comes from no file
	Column      int
}

// Entries returns all entries in the order of the file.
func (s *Snapshot) Entries() []Entry {
	if s == nil {
		return nil
	}
	shown := make([]Entry, len(s.entries))
	for i, e := range s.entries {
		shown[i] = e.show()
	}
	return shown
}

func (e entry) show() Entry {
	return Entry{e.def.about.Key, e.Constraints, e.def.typ.formatAny(e.value), e.line, e.column}
}

// hashOf names entries that come from no file, whatever their order.
func hashOf(entries []entry) string {
	lines := make([]string, len(entries))
	for i, e := range entries {
		shown := e.show()
		lines[i] = shown.Key + " " + shown.Constraints.String() + " " + shown.Value
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:hashBytes])
}
