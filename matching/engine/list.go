package engine

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Partitions returns those that are loaded now, in order.
func (e *Engine) Partitions() []partition.ID {
	loaded := e.table.all()
	ids := make([]partition.ID, len(loaded))
	for i, q := range loaded {
		ids[i] = q.Partition()
	}
	slices.SortFunc(ids, partition.ID.Compare)
	return ids
}

// Filter selects task queues of the catalogue.
type Filter struct {
	Namespace string             // empty: all
	Prefix    string             // of the name
	Type      partition.TaskType // 0: all
	After     partition.Queue    // where the list goes on; the zero value begins it
	Limit     int                // at most so many queues
}

// Listed is a task queue of the catalogue.
type Listed struct {
	Queue      partition.Queue
	Partitions int // that the catalogue knows
}

// List returns the task queues that were added to, by namespace, name and type.
// more tells that there are others behind the last one.
func (e *Engine) List(ctx context.Context, f Filter) (queues []Listed, more bool, err error) {
	after := partition.ID{Queue: f.After, Number: math.MaxInt32}
	if f.After == (partition.Queue{}) {
		after = partition.ID{Queue: partition.Queue{Namespace: f.Namespace}}
	}
	err = e.eachListed(ctx, after, func(l store.Listed) bool {
		q := l.Partition.Queue
		if f.Namespace != "" && q.Namespace != f.Namespace {
			return q.Namespace < f.Namespace
		}
		if !strings.HasPrefix(q.Name, f.Prefix) || (f.Type != 0 && q.Type != f.Type) {
			return true
		}
		if n := len(queues); n > 0 && queues[n-1].Queue == q {
			queues[n-1].Partitions++
			return true
		}
		if len(queues) == f.Limit {
			more = true
			return false
		}
		queues = append(queues, Listed{Queue: q, Partitions: 1})
		return true
	})
	if err != nil {
		return nil, false, task.Errorf(task.StoreUnavailable, "listing task queues: %w", err)
	}
	return queues, more, nil
}
