package ledger

import (
	"testing"

	"github.com/taskring/taskring/matching/task"
)

// TestNextDue: the earliest due time is known whatever the order of adds, also
// when later tasks are left to the store; those are surely scheduled.
func TestNextDue(t *testing.T) {
	l := newLedger(Limits{DelayedItems: 2})
	if l.NextDue() != 0 {
		t.Errorf("an empty partition has a task that is due at %d", l.NextDue())
	}
	l.addOne(&task.Task{})
	if l.NextDue() != 0 {
		t.Errorf("a ready task is due at %d", l.NextDue())
	}
	at := func(i int) task.Micros { return task.At(start) + task.Micros(1e6*i) }
	for i, due := range []int{50, 30, 40, 60, 20} {
		l.addOne(&task.Task{NotBefore: at(due)})
		want := []int{50, 30, 30, 30, 20}[i]
		if l.NextDue() != at(want) {
			t.Errorf("after %d adds the first is due at %d, want %d", i+1, l.NextDue(), at(want))
		}
	}
	if !l.Windowed() || l.ReadySpilled() {
		t.Errorf("scheduled tasks left to the store: %v, ready ones: %v, want only the former", l.Windowed(), l.ReadySpilled())
	}
}
