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
	line := slices.Clone(d.polls)
	if d.order == NewestFirst {
		slices.Reverse(line)
	}
	for _, t := range d.tasks {
		takes := func(p *Poll) bool { return p.MinPriority == 0 || t.Priority <= p.MinPriority }
		if i := slices.IndexFunc(line, takes); i >= 0 {
			d.withdraw(t)
			if line[i].Want == 1 {
				d.leave(line[i])
			}
			return t, line[i], true
		}
	}
	return nil, nil, false
}

func (d *dumb) withdraw(t *Task) {
	d.tasks = slices.DeleteFunc(d.tasks, func(o *Task) bool { return o == t })
}

func (d *dumb) leave(p *Poll) {
	d.polls = slices.DeleteFunc(d.polls, func(o *Poll) bool { return o == p })
}

// pair is the matcher and the dumb one, told of the same events.
type pair struct {
	m      Matcher
	d      dumb
	id     task.ID // of the latest task
	parked []*Poll // all polls that ever waited
}

// tape drives a pair through the operations that its bytes stand for, and
// reports the first difference.
func tape(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	var w pair
	w.d.order = Order(b[0] % 2)
	w.m.Order = w.d.order
	for at := 1; at+1 < len(b); at += 2 {
		if err := w.step(b[at]%6, b[at+1]); err != nil {
			return err
		}
		if w.m.Tasks() != len(w.d.tasks) || w.m.Polls() != len(w.d.polls) {
			return fmt.Errorf("%d tasks and %d polls, want %d and %d", w.m.Tasks(), w.m.Polls(), len(w.d.tasks), len(w.d.polls))
		}
	}
	return nil
}

func (w *pair) step(op, arg byte) error {
	switch op {
	case 2:
		w.wait(arg)
	case 3:
		return w.withdraw(arg)
	case 4:
		return w.leave(arg)
	case 5:
		return w.next()
	default: // twice as often as the rest
		w.offer(arg)
	}
	return nil
}

func (w *pair) offer(arg byte) {
	w.id++
	t := &Task{ID: w.id, Priority: task.Priority(arg%5 + 1), Since: task.Micros(arg / 5 % 8)}
	w.m.Offer(t)
	w.m.Offer(t) // in already: nothing changes
	w.d.tasks = append(w.d.tasks, t)
}

func (w *pair) wait(arg byte) {
	p := &Poll{Want: int(arg%3) + 1, MinPriority: task.Priority(arg / 3 % 6)}
	w.m.Wait(p)
	w.d.polls = append(w.d.polls, p)
	w.parked = append(w.parked, p)
}

func (w *pair) withdraw(arg byte) error {
	if len(w.d.tasks) == 0 {
		return nil
	}
	t := w.d.tasks[int(arg)%len(w.d.tasks)]
	w.d.withdraw(t)
	if !w.m.Withdraw(t) || w.m.Withdraw(t) {
		return fmt.Errorf("task %v: Withdraw is wrong about whether it was in", t.ID)
	}
	return nil
}

func (w *pair) leave(arg byte) error {
	if len(w.parked) == 0 {
		return nil
	}
	p := w.parked[int(arg)%len(w.parked)]
	if in := slices.Contains(w.d.polls, p); w.m.Leave(p) != in {
		return fmt.Errorf("the matcher is wrong about whether the leaving poll was in: %v", in)
	}
	w.d.leave(p)
	return nil
}

func (w *pair) next() error {
	wt, wp, wok := w.d.next()
	t, p, ok := w.m.Next()
	if ok != wok || t != wt || p != wp {
		return fmt.Errorf("the next pair is %+v, %+v, %v, want %+v, %+v, %v", t, p, ok, wt, wp, wok)
	}
	return nil
}

func FuzzMatcher(f *testing.F) {
	f.Add([]byte{0, 0, 2, 2, 0, 5, 0})
	f.Add([]byte{1, 2, 1, 2, 7, 0, 4, 0, 3, 0, 14, 5, 0, 5, 0, 5, 0, 5, 0})
	f.Add([]byte{0, 2, 12, 2, 2, 0, 4, 5, 0, 3, 0, 0, 0, 4, 1, 5, 0, 5, 0})
	long := make([]byte, 1201)
	long[0] = 1
	for i := range 600 {
		long[1+2*i], long[2+2*i] = byte(i*7+i/13), byte(i*31+i/7)
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
