// Package match decides which waiting task meets which waiting poll, now.
//
// A [Matcher] is two collections: ready tasks in the order in which they are
// to be handed out, and polls in the order in which they are to be served.
// [Matcher.Next] takes the best permissible pair out of both. It is pure: it
// starts nothing, reads no clock, and is not safe for concurrent use.
//
// # Order
//
// Tasks go by priority, then by the time since when they are ready, then by id.
// Polls go newest first, so that surplus workers idle and can be let go, or
// oldest first. A poll may refuse tasks below a priority; as that only ever
// excludes less urgent tasks, the best task decides: if no poll takes it, no
// poll takes any.
//
//	tasks   prio 1: [a b]   prio 3: [c d e]        polls: [p3 p2 p1]
//	Next -> (a, p3), then (b, p3) while p3 wants more, then p2 ...
//
// # Invariants
//
//	M1  A task is in the matcher or with exactly one poll; never both.
//	M2  After Next said no, no permissible pair is left: no wake-up is owed.
//	M3  A poll is never given more than it wants, and nothing after it left.
package match

import (
	"container/heap"
	"container/list"

	"github.com/taskring/taskring/matching/task"
)

// Task is a ready task. The first three fields must be set before
// [Matcher.Offer] and must not change while it is in the matcher.
type Task struct {
	ID       task.ID
	Priority task.Priority
	Since    task.Micros // ready since
	Value    any         // the caller's own

	index int // position in its heap + 1; 0 = not in the matcher
}

// Poll is a worker that waits for tasks.
type Poll struct {
	Want        int           // how many tasks it still takes; > 0 while it waits
	MinPriority task.Priority // takes only tasks at least this urgent; 0 = all
	Value       any           // the caller's own

	element *list.Element // its place in line; nil = not in the matcher
}

// Order is the order in which polls are served.
type Order uint8

// The orders of polls.
const (
	NewestFirst Order = iota
	OldestFirst
)

// Matcher holds waiting tasks and waiting polls. The zero value is ready to use
// and serves the newest poll first.
type Matcher struct {
	Order Order // may be changed at any time

	tasks [task.Priorities]taskHeap
	polls list.List // front = newest
}

// Offer adds a task. A task that is in already stays where it is.
func (m *Matcher) Offer(t *Task) {
	if t.index == 0 {
		heap.Push(&m.tasks[t.Priority.Level()], t)
	}
}

// Withdraw removes a task and reports whether it was in.
func (m *Matcher) Withdraw(t *Task) bool {
	if t.index == 0 {
		return false
	}
	heap.Remove(&m.tasks[t.Priority.Level()], t.index-1)
	return true
}

// Wait adds a poll that wants at least one task.
func (m *Matcher) Wait(p *Poll) {
	if p.element == nil && p.Want > 0 {
		p.element = m.polls.PushFront(p)
	}
}

// Leave removes a poll and reports whether it was in.
func (m *Matcher) Leave(p *Poll) bool {
	if p.element == nil {
		return false
	}
	m.polls.Remove(p.element)
	p.element = nil
	return true
}

// Next takes the best permissible pair: the task leaves, the poll wants one
// task less and leaves when it wants no more. It is false when there is none.
func (m *Matcher) Next() (*Task, *Poll, bool) {
	best := m.best()
	if best == nil {
		return nil, nil, false
	}
	p := m.taker(best.Priority)
	if p == nil {
		return nil, nil, false
	}
	heap.Pop(&m.tasks[best.Priority.Level()])
	p.Want--
	if p.Want == 0 {
		m.Leave(p)
	}
	return best, p, true
}

// Return gives back a place that [Matcher.Next] took from the poll, as the task
// turned out not to be deliverable. The poll is first in line again.
func (m *Matcher) Return(p *Poll) {
	p.Want++
	switch {
	case p.element != nil:
	case m.Order == OldestFirst:
		p.element = m.polls.PushBack(p)
	default:
		p.element = m.polls.PushFront(p)
	}
}

// Polls is the number of waiting polls.
func (m *Matcher) Polls() int { return m.polls.Len() }

// Tasks is the number of waiting tasks.
func (m *Matcher) Tasks() int {
	n := 0
	for i := range m.tasks {
		n += m.tasks[i].Len()
	}
	return n
}

// Oldest returns since when the longest-waiting task is ready, or false.
func (m *Matcher) Oldest() (task.Micros, bool) {
	var oldest task.Micros
	found := false
	for p := task.MinPriority; p <= task.MaxPriority; p++ {
		if since, ok := m.OldestOf(p); ok && (!found || since < oldest) {
			oldest, found = since, true
		}
	}
	return oldest, found
}

// OldestOf returns since when the longest-waiting task of a priority is ready, or
// false.
func (m *Matcher) OldestOf(p task.Priority) (task.Micros, bool) {
	waiting := m.tasks[p.Level()].items
	if len(waiting) == 0 {
		return 0, false
	}
	return waiting[0].Since, true
}

// best returns the task that is to be handed out next, or nil.
func (m *Matcher) best() *Task {
	for i := range m.tasks {
		if waiting := m.tasks[i].items; len(waiting) > 0 {
			return waiting[0]
		}
	}
	return nil
}

// taker returns the first poll in line that takes tasks of the priority, or nil.
func (m *Matcher) taker(p task.Priority) *Poll {
	element, next := m.polls.Front(), (*list.Element).Next
	if m.Order == OldestFirst {
		element, next = m.polls.Back(), (*list.Element).Prev
	}
	for ; element != nil; element = next(element) {
		poll := element.Value.(*Poll) //nolint:forcetypeassert // only Wait pushes
		if poll.MinPriority == 0 || p <= poll.MinPriority {
			return poll
		}
	}
	return nil
}

// taskHeap orders the tasks of one priority. Its methods are for container/heap.
type taskHeap struct{ items []*Task }

func (h *taskHeap) Len() int { return len(h.items) }

func (h *taskHeap) Less(i, j int) bool {
	a, b := h.items[i], h.items[j]
	return a.Since < b.Since || (a.Since == b.Since && a.ID < b.ID)
}

func (h *taskHeap) Swap(i, j int) {
	h.items[i], h.items[j] = h.items[j], h.items[i]
	h.items[i].index, h.items[j].index = i+1, j+1
}

func (h *taskHeap) Push(x any) {
	t := x.(*Task) //nolint:forcetypeassert // only Offer pushes
	h.items = append(h.items, t)
	t.index = len(h.items)
}

func (h *taskHeap) Pop() any {
	last := len(h.items) - 1
	t := h.items[last]
	h.items[last] = nil
	h.items = h.items[:last]
	t.index = 0
	return t
}
