package dynamicconfig

import (
	"go.yaml.in/yaml/v3"

	"github.com/taskring/taskring/partition"
)

// rules are the entries of one setting, arranged so that at most three look-ups
// find the winner: the names of the namespace, the namespace, the name.
//
// Which entries meet in a slot is settled here, once, and not at each reading.
// For the entries {}: 1, {type: workflow}: 2, {namespace: a}: 3
//
//	anywhere            unknown 1  workflow 2  activity 1  dispatch 1
//	namespaces[a].all   unknown 3  workflow 3  activity 3  dispatch 3
//
// and for a workflow queue of a the rank decides: 3 (namespace) beats 2 (type).
type rules[T any] struct {
	anywhere   cell[T]
	names      map[string]*cell[T]
	namespaces map[string]*namespaceRules[T]
}

type namespaceRules[T any] struct {
	all   cell[T]
	names map[string]*cell[T]
}

// cell holds a slot for each task type; slot 0 is for unknown ones.
type cell[T any] [partition.Dispatch + 1]slot[T]

// slot is the winner among the entries that share a cell.
type slot[T any] struct {
	value T
	rank  rank
	entry int32 // index in the snapshot, -1 for the default
}

func (c *cell[T]) at(t partition.TaskType) *slot[T] {
	if int(t) < len(c) {
		return &c[t]
	}
	return &c[0]
}

// offer gives the slots that an entry is for to it, unless a higher rank is there.
func (c *cell[T]) offer(t partition.TaskType, s slot[T]) {
	for i := range c {
		if (t == 0 || int(t) == i) && c[i].rank < s.rank {
			c[i] = s
		}
	}
}

// lookup returns the winner for a queue. An empty namespace or name and type 0
// are met by no constraint.
func (r *rules[T]) lookup(q partition.Queue) *slot[T] {
	best := r.anywhere.at(q.Type)
	if ns := r.namespaces[q.Namespace]; ns != nil {
		if named := ns.names[q.Name]; named != nil && named.at(q.Type).rank > 0 {
			return named.at(q.Type) // nothing is above namespace and name
		}
		best = higher(best, ns.all.at(q.Type))
	}
	if len(r.names) > 0 {
		if named := r.names[q.Name]; named != nil {
			best = higher(best, named.at(q.Type))
		}
	}
	return best
}

func higher[T any](a, b *slot[T]) *slot[T] {
	if b.rank > a.rank {
		return b
	}
	return a
}

// cellOf returns the cell for entries with these constraints, made when missing.
func (r *rules[T]) cellOf(c Constraints) *cell[T] {
	names := &r.names
	if c.Namespace != "" {
		if r.namespaces == nil {
			r.namespaces = map[string]*namespaceRules[T]{}
		}
		ns := r.namespaces[c.Namespace]
		if ns == nil {
			ns = &namespaceRules[T]{}
			r.namespaces[c.Namespace] = ns
		}
		if c.TaskQueueName == "" {
			return &ns.all
		}
		names = &ns.names
	}
	if c.TaskQueueName == "" {
		return &r.anywhere
	}
	if *names == nil {
		*names = map[string]*cell[T]{}
	}
	named := (*names)[c.TaskQueueName]
	if named == nil {
		named = &cell[T]{}
		(*names)[c.TaskQueueName] = named
	}
	return named
}

func (t Type[T]) compile(entries []entry) any {
	r := &rules[T]{}
	for i := range r.anywhere {
		r.anywhere[i] = slot[T]{value: t.fallback, entry: -1}
	}
	for _, e := range entries {
		value := e.value.(T) //nolint:forcetypeassert // this type read it
		r.cellOf(e.Constraints).offer(e.TaskType, slot[T]{value, e.rank(), e.index})
	}
	return r
}

func (t Type[T]) resolve(compiled any, q partition.Queue) (any, int) {
	r, ok := compiled.(*rules[T])
	if !ok {
		return t.fallback, -1
	}
	found := r.lookup(q)
	return found.value, int(found.entry)
}

func (t Type[T]) readAny(p *parser, node *yaml.Node) (any, bool) { return t.read(p, node) }

func (t Type[T]) checkAny(v any) error { return t.check(v.(T)) } //nolint:forcetypeassert // a T by its override

func (t Type[T]) formatAny(v any) string { return t.format(v.(T)) } //nolint:forcetypeassert // this type read it

func (t Type[T]) equalAny(a, b any) bool { return t.equal(a.(T), b.(T)) } //nolint:forcetypeassert // this type read both
