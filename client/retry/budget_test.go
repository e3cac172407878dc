package retry

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/taskring/taskring/matching/task"
)

func TestBudget(t *testing.T) {
	var b Budget
	for range 1000 {
		b.Deposit(0.2) // a full budget does not grow
	}
	for n := range fullBudget {
		if !b.Withdraw() {
			t.Fatalf("only %d retries in a full budget, want %d", n, fullBudget)
		}
	}
	if b.Withdraw() || b.Left() != 0 {
		t.Errorf("an empty budget of %v gives another retry", b.Left())
	}
	b.Deposit(-1)
	for range 4 {
		b.Deposit(0.2)
	}
	if b.Withdraw() {
		t.Error("four calls with a ratio of 0.2 allow a retry")
	}
	b.Deposit(0.2)
	if !b.Withdraw() || b.Withdraw() {
		t.Error("five calls with a ratio of 0.2 do not allow exactly one retry")
	}
}

func TestBudgetIsShared(t *testing.T) {
	var b Budget
	var allowed atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				if b.Withdraw() {
					allowed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if n := allowed.Load(); n != fullBudget {
		t.Errorf("4 goroutines were allowed %d retries together, want %d", n, fullBudget)
	}
}

// TestBudgeted: what does no harm to a node that failed is free.
func TestBudgeted(t *testing.T) {
	counted := map[task.Reason]bool{task.StoreUnavailable: true, task.OutcomeUnknown: true, task.Quota: true}
	for r := task.Internal; r <= task.DiskWatermark; r++ {
		if Budgeted(Failure{Reason: r}) != counted[r] {
			t.Errorf("%v: counted %v", r, !counted[r])
		}
	}
	if Budgeted(Failure{NotSent: true, Reason: task.OutcomeUnknown}) {
		t.Error("a call that never left is counted")
	}
}

func BenchmarkLookupBudget(b *testing.B) {
	var budget Budget
	b.ReportAllocs()
	for b.Loop() {
		budget.Deposit(0.2)
	}
}
