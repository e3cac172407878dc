package dynamicconfig

import (
	"time"

	"github.com/taskring/taskring/partition"
)

// Reading is one value to follow: a setting at one place. It is what one
// subscribes to. Its zero value is of no use: it comes from a setting.
type Reading[T any] struct {
	value func(in *Snapshot, now time.Time) T
	next  func(in *Snapshot, now time.Time) (time.Time, bool)
	equal func(a, b T) bool
}

// Value returns what is in force at a time.
func (r Reading[T]) Value(in *Snapshot, now time.Time) T { return r.value(in, now) }

// Next returns the first instant after now at which the value may change although
// the snapshot stays, and false for none.
func (r Reading[T]) Next(in *Snapshot, now time.Time) (time.Time, bool) { return r.next(in, now) }

// Equal reports whether two values are the same to whoever reads the setting.
func (r Reading[T]) Equal(a, b T) bool { return r.equal(a, b) }

// Reading follows the setting.
func (s *GlobalSetting[T]) Reading() Reading[T] {
	return s.reading(s.Get)
}

// Reading follows the setting for a namespace.
func (s *NamespaceSetting[T]) Reading(namespace string) Reading[T] {
	return s.reading(func(in *Snapshot) T { return s.Get(in, namespace) })
}

// Reading follows the setting for a task queue.
func (s *QueueSetting[T]) Reading(q partition.Queue) Reading[T] {
	return s.reading(func(in *Snapshot) T { return s.Get(in, q) })
}

func (s *setting[T]) reading(get func(*Snapshot) T) Reading[T] {
	return Reading[T]{
		value: func(in *Snapshot, _ time.Time) T { return get(in) },
		next:  func(*Snapshot, time.Time) (time.Time, bool) { return time.Time{}, false },
		equal: s.typ.equal,
	}
}

// ForKey follows a gradual change as it concerns one key: the value is the old or
// the new one, and it changes at the flip. T has to be comparable, as all
// scalars are.
func ForKey[T comparable](of Reading[Gradual[T]], key string) Reading[T] {
	return Reading[T]{
		value: func(in *Snapshot, now time.Time) T { return of.value(in, now).Value(key, now) },
		next: func(in *Snapshot, now time.Time) (time.Time, bool) {
			flip, changes := of.value(in, now).When(key)
			return flip, changes && now.Before(flip)
		},
		equal: func(a, b T) bool { return a == b },
	}
}
