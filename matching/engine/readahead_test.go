package engine

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/matching/store/memory"
)

// TestReadAheadShares: the shares of any number of partitions stay within the
// budget.
func TestReadAheadShares(t *testing.T) {
	for n := 1; n < 2000; n++ {
		parts := partsFor(n)
		if parts < uint(n) || parts >= 2*uint(max(n, 1)) {
			t.Fatalf("%d partitions get 1/%d of the budget each", n, parts)
		}
	}
}

// TestReadAheadFollowsTheSetting: a budget that is changed reaches partitions
// that are loaded already.
func TestReadAheadFollowsTheSetting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, memory.New(memory.Options{}), tuned{Settings: Settings{ReadAheadBytes: 1 << 20}})
		p := numbered(0)
		for range 100 {
			r.add(p)
		}
		q, _ := r.Loaded(p)
		if s := q.Describe(); s.Spilled != 0 {
			t.Fatalf("%d tasks are left to the store within the budget", s.Spilled)
		}
		r.set(tuned{Settings: Settings{ReadAheadBytes: 1 << 10}})
		pass(time.Minute)
		r.add(p)
		if s := q.Describe(); s.Spilled != 1 {
			t.Errorf("%d tasks are left to the store under the lower budget, want 1", s.Spilled)
		}
		r.stop()
	})
}
