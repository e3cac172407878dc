package queue

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/taskring/taskring/matching/backlog"
	"github.com/taskring/taskring/matching/commit"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// counting counts what is written and how often.
type counting struct {
	*memory.Store
	records, commits atomic.Int64
}

func (c *counting) Commit(ctx context.Context, ms []*row.Mutation) []store.Outcome {
	c.commits.Add(1)
	for _, m := range ms {
		c.records.Add(int64(m.Records()))
		if m.Meta != nil {
			c.records.Add(-1) // one every five seconds at most; the budget is about tasks
		}
	}
	return c.Store.Commit(ctx, ms)
}

// rig is a queue with a real lane on a memory store. Its timers are real, or
// virtual in a bubble.
type rig struct {
	*Queue
	store *counting
	lanes *commit.Lanes
	lost  atomic.Int64
}

func newRig(t *testing.T, s *counting, settings *Settings) *rig {
	t.Helper()
	if s == nil {
		s = &counting{Store: memory.New(memory.Options{Broken: func(err error) { t.Errorf("a law of rows is broken: %v", err) }})}
	}
	r := &rig{store: s}
	holder := task.Holder{RunID: "run"}
	lanes, err := commit.New(commit.Config{Store: s, Holder: holder})
	if err != nil {
		t.Fatal(err)
	}
	r.lanes = lanes
	lanes.Start()
	opened, err := backlog.Open(context.Background(), s, holder, testPartition)
	if err != nil {
		t.Fatal(err)
	}
	timers := &timer{}
	r.Queue = New(Config{
		Partition: testPartition, Opened: opened, Store: s, Logger: slog.New(slog.DiscardHandler),
		Settings: func() *Settings { return settings },
		Dirty:    func(q *Queue) { lanes.Dirty(q) },
		Wake:     timers.wake,
		Lost:     func(*Queue) { r.lost.Add(1) },
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := r.Close(ctx, Shutdown); err != nil {
			t.Errorf("close: %v", err)
		}
		timers.stop()
		if err := lanes.Stop(ctx); err != nil {
			t.Errorf("stop of the lanes: %v", err)
		}
	})
	return r
}

// timer is a wheel for one queue: each wake-up has a timer of its own, so that
// none puts off another.
type timer struct {
	mu  sync.Mutex
	all []*time.Timer
}

func (w *timer) wake(q *Queue, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, time.AfterFunc(time.Until(at), q.Tick))
}

func (w *timer) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.all {
		t.Stop()
	}
}

func someTasks(n int) []*task.Task {
	ts := make([]*task.Task, n)
	for i := range ts {
		ts[i] = &task.Task{Priority: task.DefaultPriority, Payload: []byte("payload")}
	}
	return ts
}

func grantsOf(granted []Granted) []task.Grant {
	gs := make([]task.Grant, len(granted))
	for i, g := range granted {
		gs[i] = g.Grant
	}
	return gs
}

func mustAll(t *testing.T, what string, results []Result) {
	t.Helper()
	for _, r := range results {
		if r.Err != nil {
			t.Fatalf("%s: task %s: %v", what, r.ID, r.Err)
		}
	}
}

// TestRecordsPerTask holds the budget: two records a task in flow, none when it
// is done before it was written, three to drain.
func TestRecordsPerTask(t *testing.T) {
	const n = 500
	t.Run("flow with a waiting worker", func(t *testing.T) {
		r := newRig(t, nil, nil)
		ctx := t.Context()
		for range n {
			got := make(chan PollResult)
			go func() { got <- r.Poll(ctx, PollRequest{Max: 1, Wait: time.Minute}) }()
			mustAll(t, "add", r.Add(someTasks(1)).Wait(ctx))
			mustAll(t, "complete", r.Complete(grantsOf((<-got).Grants)).Wait(ctx))
		}
		// A poll that came after its add was written costs the lease's two records more.
		if per := float64(r.store.records.Load()) / n; per > 2.5 {
			t.Errorf("%.2f records a task, want about 2", per)
		}
	})
	t.Run("drain", func(t *testing.T) {
		r := newRig(t, nil, nil)
		ctx := t.Context()
		mustAll(t, "add", r.Add(someTasks(n)).Wait(ctx))
		added := r.store.records.Load()
		for range n / 10 {
			got := r.Poll(ctx, PollRequest{Max: 10, Wait: time.Minute})
			mustAll(t, "complete", r.Complete(grantsOf(got.Grants)).Wait(ctx))
		}
		if per := float64(r.store.records.Load()-added) / n; per > 3 || added != n {
			t.Errorf("%d records for %d adds and %.2f a task to drain, want at most 3", added, n, per)
		}
	})
}

// TestNoLostWakeUp adds a task at the moment at which a poll parks, very often.
// A wake-up that is lost shows as a poll that waits for its whole time.
func TestNoLostWakeUp(t *testing.T) {
	r := newRig(t, nil, nil)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	polls := make(chan struct{})
	results := make(chan PollResult)
	go func() {
		for range polls {
			results <- r.Poll(ctx, PollRequest{Max: 1, Wait: 10 * time.Second})
		}
	}()
	defer close(polls)
	for i := range 100_000 {
		polls <- struct{}{}
		added := r.Add(someTasks(1))
		got := <-results
		if len(got.Grants) != 1 {
			t.Fatalf("round %d: the poll ended empty: %v", i, got.Empty)
		}
		r.Complete(grantsOf(got.Grants))
		mustAll(t, "add", added.Wait(ctx))
	}
}

// TestCancelledPollsLeaveNoLease lets callers leave at random moments: each
// lease must belong to a grant that reached its caller.
func TestCancelledPollsLeaveNoLease(t *testing.T) {
	r := newRig(t, nil, nil)
	ctx := context.Background()
	var received atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 1))
			for range 300 {
				pollCtx, cancel := context.WithCancel(ctx)
				time.AfterFunc(time.Duration(rng.IntN(200))*time.Microsecond, cancel)
				got := r.Poll(pollCtx, PollRequest{Max: 3, Wait: time.Minute})
				received.Add(int64(len(got.Grants)))
				cancel()
			}
		})
	}
	for range 200 {
		mustAll(t, "add", r.Add(someTasks(5)).Wait(ctx))
	}
	wg.Wait()
	if s := r.Describe(); s.Leased != received.Load() {
		t.Errorf("%d leases, but %d grants reached their callers", s.Leased, received.Load())
	}
}

// TestLeaseAndDelayRunByTimers lets virtual time do the work: nobody but the
// timer calls the queue.
func TestLeaseAndDelayRunByTimers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		ctx := context.Background()
		begun := time.Now()
		delayed := someTasks(1)
		delayed[0].NotBefore = task.At(begun.Add(time.Hour))
		mustAll(t, "add", r.Add(delayed).Wait(ctx))

		got := r.Poll(ctx, PollRequest{Max: 1, Wait: 2 * time.Hour})
		if len(got.Grants) != 1 || time.Since(begun) != time.Hour {
			t.Fatalf("the delayed task came after %v: %+v", time.Since(begun), got)
		}
		again := r.Poll(ctx, PollRequest{Max: 1, Wait: time.Hour})
		if len(again.Grants) != 1 || again.Grants[0].Attempt != 2 || time.Since(begun) != time.Hour+30*time.Second {
			t.Fatalf("the expired task came after %v: %+v", time.Since(begun), again)
		}
		mustAll(t, "complete", r.Complete(grantsOf(again.Grants)).Wait(ctx))
		if empty := r.Poll(ctx, PollRequest{Wait: time.Minute}); empty.Empty != Timeout {
			t.Fatalf("the empty poll ended as %v", empty.Empty)
		}
	})
}

// TestBigBacklog runs more tasks than memory takes through a partition, with
// small bounds, and checks that all come once.
func TestBigBacklog(t *testing.T) {
	settings := &Settings{Limits: ledger.Limits{ReadAheadItems: 50, MutationItems: 64, SweepRows: 100}}
	r := newRig(t, nil, settings)
	ctx := context.Background()
	const n = 5000
	for range n / 100 {
		mustAll(t, "add", r.Add(someTasks(100)).Wait(ctx))
	}
	if s := r.Describe(); s.Ready > 100 || s.Backlog != n {
		t.Errorf("%d ready in memory and a backlog of %d, want at most 100 and %d", s.Ready, s.Backlog, n)
	}
	seen := make(map[task.ID]bool)
	for len(seen) < n {
		got := r.Poll(ctx, PollRequest{Max: 37, Wait: time.Minute})
		if len(got.Grants) == 0 {
			t.Fatalf("no task after %d of %d: %v", len(seen), n, got.Empty)
		}
		for _, g := range got.Grants {
			if seen[g.Grant.ID] {
				t.Fatalf("task %s came twice", g.Grant.ID)
			}
			seen[g.Grant.ID] = true
		}
		mustAll(t, "complete", r.Complete(grantsOf(got.Grants)).Wait(ctx))
	}
	if s := r.Describe(); !s.Empty || s.Backlog != 0 {
		t.Errorf("after the drain: %+v", s)
	}
}

// TestCloseEndsEverything closes a partition that is busy, from two sides.
func TestCloseEndsEverything(t *testing.T) {
	r := newRig(t, nil, nil)
	ctx := context.Background()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := r.Poll(ctx, PollRequest{Max: 1, Wait: time.Minute}); got.Empty != Shutdown {
				t.Errorf("the poll ended as %v", got.Empty)
			}
		})
	}
	for r.Describe().WaitingPolls < 20 {
		runtime.Gosched() // the polls are on their way
	}
	for range 2 {
		wg.Go(func() {
			if err := r.Close(ctx, Shutdown); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	wg.Wait()
	for _, res := range r.Add(someTasks(2)).Wait(ctx) {
		if task.ReasonOf(res.Err) != task.PartitionClosing {
			t.Errorf("add after close: %v", res.Err)
		}
	}
	if got := r.Poll(ctx, PollRequest{Wait: time.Minute}); got.Empty != Shutdown {
		t.Errorf("poll after close: %v", got.Empty)
	}
}

// TestNothingHappensAfterClose: a lease that runs out once the partition was
// released is the next holder's business.
func TestNothingHappensAfterClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, nil, nil)
		ctx := context.Background()
		mustAll(t, "add", r.Add(someTasks(1)).Wait(ctx))
		if got := r.Poll(ctx, PollRequest{}); len(got.Grants) != 1 {
			t.Fatalf("the poll ended as %v", got.Empty)
		}
		if err := r.Close(ctx, Shutdown); err != nil {
			t.Fatal(err)
		}
		written := r.store.commits.Load()
		time.Sleep(time.Hour) // virtual
		if n := r.store.commits.Load() - written; n != 0 || r.Describe().Counts.LeasesExpired != 0 {
			t.Errorf("%d commits after the release, counts %+v", n, r.Describe().Counts)
		}
	})
}

// TestCallerLeaves: a caller whose deadline ends before the store answered is
// told that the outcome is unknown.
func TestCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		s := &counting{Store: memory.New(memory.Options{Commit: func([]*row.Mutation) []memory.CommitFault {
			<-stuck
			return nil
		}})}
		r := newRig(t, s, nil)
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		call := r.Add(someTasks(2))
		for _, res := range call.Wait(ctx) {
			if task.ReasonOf(res.Err) != task.OutcomeUnknown {
				t.Errorf("got %v", res.Err)
			}
		}
		close(stuck)
		mustAll(t, "add", call.Wait(context.Background()))
	})
}

func BenchmarkFlow(b *testing.B) {
	c := NewCore(ledger.Config{Partition: testPartition, Epoch: 1, Rand: rand.New(rand.NewPCG(1, 1))}, time.Unix(2_000_000_000, 0))
	now := time.Unix(2_000_000_000, 0)
	payload := make([]byte, 256)
	grants := make([]task.Grant, 0, 64)
	b.ReportAllocs()
	for b.Loop() { // 64 tasks: polled for, added, committed, completed, committed
		c.Wait(&Poll{}, 64, 0)
		tasks := make([]*task.Task, 64)
		for i := range tasks {
			tasks[i] = &task.Task{Priority: 3, Payload: payload}
		}
		if err := c.Add(tasks, "add", now); err != nil {
			b.Fatal(err)
		}
		grants = grants[:0]
		for _, p := range c.Settle(now).Ended {
			for _, g := range p.Result.Grants {
				grants = append(grants, g.Grant)
			}
		}
		c.Take(now)
		c.Committed(store.Outcome{Result: store.Stored})
		c.Complete(grants, "complete")
		c.Settle(now)
		c.Take(now)
		c.Committed(store.Outcome{Result: store.Stored})
		c.Settle(now)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/64, "ns/task")
}
