package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// thing is what the tests load: it knows whether it is open.
type thing struct {
	p      partition.ID
	closed atomic.Bool
}

// lab is a table of things whose loads and closings take a second of virtual
// time; per partition at most one thing may be open at any time.
type lab struct {
	*table[*thing]
	guard   sync.Mutex
	open    map[partition.ID]int
	loads   int
	closes  int
	broken  error // what loads end with
	breach  string
	leisure time.Duration
}

// pass lets virtual time pass.
//
//arch:bubble the tests outside of a bubble have things that take no time
func pass(d time.Duration) { time.Sleep(d) }

func newLab(leisure time.Duration) *lab {
	l := &lab{table: newTable[*thing](func() time.Duration { return 10 * time.Second }, func() int { return 1000 }), open: map[partition.ID]int{}, leisure: leisure}
	l.start()
	l.table.open = func(ctx context.Context, p partition.ID) (*thing, error) {
		select {
		case <-time.After(l.leisure):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		l.guard.Lock()
		defer l.guard.Unlock()
		l.loads++
		if l.broken != nil {
			return nil, l.broken
		}
		if l.open[p]++; l.open[p] > 1 {
			l.breach = fmt.Sprint(p, " is open twice")
		}
		return &thing{p: p}, nil
	}
	l.close = func(_ context.Context, q *thing, _ Why) error {
		pass(l.leisure)
		l.guard.Lock()
		defer l.guard.Unlock()
		l.closes++
		l.open[q.p]--
		if q.closed.Swap(true) {
			l.breach = fmt.Sprint(q.p, " was closed twice")
		}
		return nil
	}
	return l
}

// mustStop stops the table, which must close everything in good order.
func (l *lab) mustStop(t *testing.T) {
	t.Helper()
	if failed, err := l.stop(t.Context(), Shutdown); failed != 0 || err != nil {
		t.Errorf("stop = %d, %v", failed, err)
	}
}

func numbered(n int) partition.ID {
	return partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}.Partition(int32(n))
}

func TestOneLoadForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, start := newLab(time.Second), time.Now()
		var got [10]*thing
		var callers sync.WaitGroup
		for i := range got {
			callers.Go(func() { got[i], _ = l.get(t.Context(), numbered(0), true) })
		}
		synctest.Wait()
		if _, err := l.get(t.Context(), numbered(0), false); !errors.Is(err, task.NotReady) {
			t.Errorf("without waiting: %v, want NotReady", err)
		}
		hasty, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := l.get(hasty, numbered(0), true); !errors.Is(err, task.NotReady) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with a short deadline: %v, want NotReady and the deadline", err)
		}
		callers.Wait()
		for _, q := range got {
			if q == nil || q != got[0] {
				t.Fatalf("got %v, want the same thing for all", got)
			}
		}
		if l.loads != 1 || time.Since(start) != time.Second {
			t.Errorf("%d loads in %v, want 1 in 1s", l.loads, time.Since(start))
		}
		if failed, _ := l.stop(t.Context(), Shutdown); failed != 0 || l.closes != 1 {
			t.Errorf("stop: %d failed, %d closed", failed, l.closes)
		}
	})
}

// TestFailedLoadLeavesNothing: all who wait get the error, the next who asks
// begins anew.
func TestFailedLoadLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(time.Second)
		l.broken = errors.New("no disk")
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				if _, err := l.get(t.Context(), numbered(0), true); !errors.Is(err, l.broken) {
					t.Errorf("get = %v, want the cause", err)
				}
			})
		}
		callers.Wait()
		if l.loads != 1 || len(l.mu.slots) != 0 {
			t.Errorf("%d loads, %d slots left; want 1 and none", l.loads, len(l.mu.slots))
		}
		l.guard.Lock()
		l.broken = nil
		l.guard.Unlock()
		if _, err := l.get(t.Context(), numbered(0), true); err != nil {
			t.Errorf("get after the disk came back = %v", err)
		}
		l.leisure = time.Hour // longer than a load may take
		if _, err := l.get(t.Context(), numbered(1), true); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a load that hangs ends with %v, want its deadline", err)
		}
		l.leisure = 0
		l.mustStop(t)
	})
}

func TestUnload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(time.Second)
		if was, err := l.unload(t.Context(), numbered(0), Forced); was || err != nil {
			t.Errorf("unload of nothing = %v, %v", was, err)
		}
		first, _ := l.get(t.Context(), numbered(0), true)
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				if was, err := l.unload(t.Context(), numbered(0), Forced); !was || err != nil {
					t.Errorf("unload = %v, %v", was, err)
				}
			})
		}
		synctest.Wait()
		if _, err := l.get(t.Context(), numbered(0), false); !errors.Is(err, task.PartitionClosing) {
			t.Errorf("without waiting: %v, want PartitionClosing", err)
		}
		second, err := l.get(t.Context(), numbered(0), true) // waits, then loads again
		if err != nil || second == first || l.closes != 1 {
			t.Errorf("get = %v, %v after %d closings, want a new thing after 1", second, err, l.closes)
		}
		callers.Wait()
		if did, _ := l.evict(t.Context(), numbered(0), first, Idle); did {
			t.Error("the new thing was evicted in place of the old one")
		}
		l.drop(numbered(0), second, Lost)
		time.Sleep(2 * time.Second)
		if l.count() != 0 || l.closes != 2 {
			t.Errorf("%d loaded, %d closed after the second was dropped", l.count(), l.closes)
		}
		l.mustStop(t)
	})
}

// TestStopEndsLoads: who waits for a load gets an error, and nothing is loaded
// after stop began.
func TestStopEndsLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(time.Second)
		if _, err := l.get(t.Context(), numbered(1), true); err != nil {
			t.Fatal(err)
		}
		var waiter sync.WaitGroup
		waiter.Go(func() {
			if _, err := l.get(t.Context(), numbered(0), true); err == nil {
				t.Error("a load survived stop")
			}
		})
		synctest.Wait()
		l.mustStop(t)
		waiter.Wait()
		if _, err := l.get(t.Context(), numbered(2), true); !errors.Is(err, task.PartitionClosing) {
			t.Errorf("get after stop = %v, want PartitionClosing", err)
		}
		if l.closes != 1 || len(l.mu.slots) != 0 {
			t.Errorf("%d closed, %d slots left", l.closes, len(l.mu.slots))
		}
	})
}

// TestStopOfAStoreThatHangs: a load that does not end when it is told to does not
// hold up stop for longer than its context.
func TestStopOfAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(0)
		hangs := make(chan struct{})
		l.table.open = func(context.Context, partition.ID) (*thing, error) {
			<-hangs
			return nil, errors.New("the disk came back")
		}
		if _, err := l.get(t.Context(), numbered(0), false); !errors.Is(err, task.NotReady) {
			t.Fatalf("get = %v, want NotReady", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if failed, err := l.stop(ctx, Shutdown); failed != 1 || !errors.Is(err, commit.ErrAbandoned) {
			t.Errorf("stop = %d, %v, want one that failed, and that the store must not be closed", failed, err)
		}
		close(hangs)
	})
}

// TestHungLoad: a load that never ends holds nobody for longer than a load may
// take, and neither does a closing.
func TestHungLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLab(0)
		const patience = 11 * time.Second // a tenth more than a load may take
		hung := make(chan struct{})
		l.table.open = func(context.Context, partition.ID) (*thing, error) { <-hung; return &thing{}, nil }
		l.close = func(context.Context, *thing, Why) error { <-hung; return nil }
		for range 2 {
			asked := time.Now()
			_, err := l.get(t.Context(), numbered(0), true)
			if !errors.Is(err, task.NotReady) || time.Since(asked) != patience {
				t.Errorf("a hung load: %v after %v, want NotReady after %v", err, time.Since(asked), patience)
			}
		}
		hung <- struct{}{}
		if _, err := l.get(t.Context(), numbered(0), true); err != nil {
			t.Fatalf("the load has ended: %v", err)
		}
		go func() { _, _ = l.unload(t.Context(), numbered(0), Forced) }()
		synctest.Wait()
		asked := time.Now()
		if _, err := l.get(t.Context(), numbered(0), true); !errors.Is(err, task.PartitionClosing) || time.Since(asked) != patience {
			t.Errorf("a hung closing: %v after %v, want PartitionClosing after %v", err, time.Since(asked), patience)
		}
		close(hung)
		l.mustStop(t)
	})
}

func TestLimit(t *testing.T) {
	l := newLab(0)
	l.limit = func() int { return 2 }
	for n := range 2 {
		if _, err := l.get(t.Context(), numbered(n), true); err != nil {
			t.Fatal(err)
		}
	}
	var refusal *task.Error
	if _, err := l.get(t.Context(), numbered(2), true); !errors.As(err, &refusal) || refusal.Reason != task.Quota ||
		refusal.Limit.Name != "matching.maxPartitions" || !strings.Contains(refusal.Message, "holds 2 partitions") {
		t.Errorf("a third partition: %v, want Quota with the limit's name and size", err)
	}
	l.mustStop(t)
}

// TestComingAndGoing races everything with everything: never is a partition
// open twice, and what was opened is closed.
func TestComingAndGoing(t *testing.T) {
	l := newLab(0)
	var actors sync.WaitGroup
	for seed := range 8 {
		actors.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 2000 {
				p := numbered(rng.IntN(4))
				switch rng.IntN(5) {
				case 0:
					_, _ = l.unload(t.Context(), p, Forced)
				case 1:
					if q, ok := l.loaded(p); ok {
						l.drop(p, q, Lost)
					}
				case 2:
					l.all()
				default:
					_, _ = l.get(t.Context(), p, rng.IntN(2) == 0)
				}
			}
		})
	}
	actors.Wait()
	if failed, _ := l.stop(t.Context(), Shutdown); failed != 0 {
		t.Errorf("%d did not close", failed)
	}
	if l.breach != "" || l.loads != l.closes || l.count() != 0 {
		t.Errorf("breach %q; %d loads, %d closings, %d counted", l.breach, l.loads, l.closes, l.count())
	}
}
