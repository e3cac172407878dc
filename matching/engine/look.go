package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Lookup returns what the store's catalogue has of a partition, which need not
// be loaded; known is false when it was never added to.
func (e *Engine) Lookup(ctx context.Context, p partition.ID) (l store.Listed, known bool, err error) {
	before := p
	before.Number--
	if p.IsRoot() { // behind all partitions of the type before
		before.Type--
		before.Number = math.MaxInt32
	}
	listed, err := e.cfg.Store.List(ctx, before, 1)
	if err != nil {
		return store.Listed{}, false, task.Errorf(task.StoreUnavailable, "looking up partition %v: %w", p, err)
	}
	if len(listed) == 1 && listed[0].Partition == p {
		return listed[0], true, nil
	}
	return store.Listed{}, false, nil
}

// Look is Lookup for somebody who asks about a partition by its name, which may
// be mistyped: it returns NotFound when there is no such queue, neither in the
// catalogue nor among what is polled on this node, and when the queue has no
// partition of that number. It loads nothing and writes nothing.
func (e *Engine) Look(ctx context.Context, p partition.ID) (l store.Listed, known bool, err error) {
	l, known, err = e.Lookup(ctx, p)
	if err != nil || known {
		return l, known, err
	}
	if _, loaded := e.table.loaded(p); loaded {
		return l, false, nil
	}
	there, err := e.hasQueue(ctx, p.Queue)
	switch {
	case err != nil:
		return l, false, err
	case !there:
		return l, false, task.Errorf(task.NotFound, "there is no task queue %s: no task was added to it lately, and nobody polls it", nameOf(p.Queue))
	case p.Kind == partition.Normal && p.Number >= e.Counts(p.Queue).Read:
		return l, false, e.noPartition(p)
	}
	return l, false, nil
}

func nameOf(q partition.Queue) string {
	return fmt.Sprintf("%q of type %v in namespace %q", q.Name, q.Type, q.Namespace)
}

func (e *Engine) noPartition(p partition.ID) error {
	return task.Errorf(task.NotFound, "there is no partition %d: task queue %s has partitions 0 to %d", p.Number, nameOf(p.Queue), e.Counts(p.Queue).Read-1)
}

// hasQueue reports whether a partition of the queue is in the catalogue, or loaded
// on this node.
func (e *Engine) hasQueue(ctx context.Context, q partition.Queue) (bool, error) {
	before := partition.ID{Queue: q, Number: math.MaxInt32}
	before.Type--
	listed, err := e.cfg.Store.List(ctx, before, 1)
	if err != nil {
		return false, task.Errorf(task.StoreUnavailable, "looking up task queue %s: %w", nameOf(q), err)
	}
	if len(listed) == 1 && listed[0].Partition.Queue == q {
		return true, nil
	}
	for n := range e.Counts(q).Read {
		if _, loaded := e.table.loaded(q.Partition(n)); loaded {
			return true, nil
		}
	}
	return false, nil
}
