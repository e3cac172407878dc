package match

import (
	"fmt"
	"slices"
	"testing"

	"github.com/taskring/taskring/matching/task"
)

// dumb is the matcher written as its definition: it looks at every pair.
type dumb struct {
	order Order
	tasks []*Task
	polls []*Poll // oldest first
}

func (d *dumb) next() (*Task, *Poll, bool) {
	slices.SortFunc(d.tasks, func(a, b *Task) int {
		switch {
		case a.Priority != b.Priority:
			return int(a.Priority) - int(b.Priority)
		case a.Since != b.Since:
			return int(a.Since - b.Since)
		default:
			return int(a.ID) - int(b.ID)
		}
	})
	for _, t := range d.tasks {
		for i := range d.polls {
			p := d.polls[i]
			if d.order == NewestFirst {
				p = d.polls[len(d.polls)-1-i]
			}
			if p.MinPriority == 0 || t.Priority <= p.MinPriority {
				d.tasks = slices.DeleteFunc(d.tasks, func(o *Task) bool { return o == t })
				if p.Want == 1 {
					d.leave(p)
				}
				return t, p, true
			}
		}
	}
	return nil, nil, false
}

func (d *dumb) leave(p *Poll) { d.polls = slices.DeleteFunc(d.polls, func(o *Poll) bool { return o == p }) }

// tape drives the matcher and the dumb one through the operations that its
// bytes stand for, and reports the first difference.
func tape(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var m Matcher
	d := &dumb{order: Order(b[0] % 2)}
	m.Order = d.order
	var id task.ID
	var parked []*Poll
	for at := 1; at+1 < len(b); at += 2 {
		op, arg := b[at]%6, b[at+1]
		switch op {
		case 0, 1:
			id++
			t := &Task{ID: id, Priority: task.Priority(arg%5 + 1), Since: task.Micros(arg / 5 % 8)}
			m.Offer(t)
			m.Offer(t) // in already: nothing changes
			d.tasks = append(d.tasks, t)
		case 2:
			p := &Poll{Want: int(arg%3) + 1, MinPriority: task.Priority(arg / 3 % 6)}
			m.Wait(p)
			d.polls = append(d.polls, p)
			parked = append(parked, p)
		case 3:
			if len(d.tasks) > 0 {
				t := d.tasks[int(arg)%len(d.tasks)]
				d.tasks = slices.DeleteFunc(d.tasks, func(o *Task) bool { return o == t })
				if !m.Withdraw(t) || m.Withdraw(t) {
					return fmt.Errorf("task %v: Withdraw is wrong about whether it was in", t.ID)
				}
			}
		case 4:
			if len(parked) > 0 {
				p := parked[int(arg)%len(parked)]
				if in := slices.Contains(d.polls, p); m.Leave(p) != in {
					return fmt.Errorf("Leave is wrong about whether the poll was in: %v", in)
				}
				d.leave(p)
			}
		case 5:
			if err := sameNext(&m, d); err != nil {
				return err
			}
		}
		if m.Tasks() != len(d.tasks) || m.Polls() != len(d.polls) {
			return fmt.Errorf("%d tasks and %d polls, want %d and %d", m.Tasks(), m.Polls(), len(d.tasks), len(d.polls))
		}
	}
	return nil
}

func sameNext(m *Matcher, d *dumb) error {
	wt, wp, wok := d.next()
	t, p, ok := m.Next()
	if ok != wok || t != wt || p != wp {
		return fmt.Errorf("Next = %+v, %+v, %v, want %+v, %+v, %v", t, p, ok, wt, wp, wok)
	}
	return nil
}

func FuzzMatcher(f *testing.F) {
	f.Add([]byte{0, 0, 2, 2, 0, 5, 0})
	f.Add([]byte{1, 2, 1, 2, 7, 0, 4, 0, 3, 0, 14, 5, 0, 5, 0, 5, 0, 5, 0})
	f.Add([]byte{0, 2, 12, 2, 2, 0, 4, 5, 0, 3, 0, 0, 0, 4, 1, 5, 0, 5, 0})
	long := []byte{1}
	for i := range 600 {
		long = append(long, byte(i*7+i/13), byte(i*31+i/7))
	}
	f.Add(long)
	f.Fuzz(func(t *testing.T, b []byte) {
		if err := tape(b); err != nil {
			t.Fatal(err)
		}
	})
}

func TestReturnKeepsThePlaceInLine(t *testing.T) {
	for _, order := range []Order{NewestFirst, OldestFirst} {
		m := Matcher{Order: order}
		first, second := &Poll{Want: 1, Value: "first"}, &Poll{Want: 1, Value: "second"}
		m.Wait(first)
		m.Wait(second)
		m.Offer(&Task{ID: 1, Priority: 1})
		_, p, _ := m.Next()
		m.Return(p)
		m.Offer(&Task{ID: 2, Priority: 1})
		if _, again, ok := m.Next(); !ok || again != p {
			t.Errorf("order %d: after Return the next task went to %v, want %v", order, again.Value, p.Value)
		}
	}
}

func TestOldest(t *testing.T) {
	var m Matcher
	if _, ok := m.Oldest(); ok {
		t.Error("an empty matcher has an oldest task")
	}
	m.Offer(&Task{ID: 1, Priority: 1, Since: 50})
	m.Offer(&Task{ID: 2, Priority: 4, Since: 20})
	if since, ok := m.Oldest(); !ok || since != 20 {
		t.Errorf("Oldest = %d, %v", since, ok)
	}
}

func BenchmarkMatch(b *testing.B) {
	tasks := make([]Task, 4096)
	for i := range tasks {
		tasks[i] = Task{ID: task.ID(i + 1), Priority: 3, Since: task.Micros(i)}
	}
	var m Matcher
	b.ReportAllocs()
	for b.Loop() {
		for i := range tasks {
			m.Offer(&tasks[i])
		}
		p := &Poll{Want: len(tasks)}
		m.Wait(p)
		for range tasks {
			m.Next()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(tasks)), "ns/task")
}
