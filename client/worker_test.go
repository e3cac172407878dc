package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// quiet is for tests that make things go wrong on purpose.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// running is a worker that runs until it is stopped.
type running struct {
	stop context.CancelFunc
	err  chan error
}

// run starts a worker.
func (w *world) run(t testing.TB, o WorkerOptions) *running {
	t.Helper()
	o.Queue = testQueue
	if o.Logger == nil {
		o.Logger = quiet()
	}
	worker, err := NewWorker(w.client, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{stop: cancel, err: make(chan error, 1)}
	go func() { r.err <- worker.Run(ctx) }()
	return r
}

// end stops the worker and returns what Run did.
func (r *running) end() error {
	r.stop()
	return <-r.err
}

func TestNewWorkerRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		h := func(context.Context, *Task) error { return nil }
		for want, o := range map[string]WorkerOptions{
			"queue name is empty": {Queue: partition.Queue{Namespace: "ns", Type: partition.Activity}, Handler: h},
			"no Handler":          {Queue: testQueue},
			"between 1s and 12h":  {Queue: testQueue, Handler: h, LeaseDuration: time.Millisecond},
		} {
			if _, err := NewWorker(w.client, o); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one that says %q", err, want)
			}
		}
	})
}

func TestWorkerWorks(t *testing.T) {
	for _, partitions := range []int32{1, 4} {
		t.Run(strconv.Itoa(int(partitions)), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, Options{Settings: settings(Settings{WritePartitions: partitions})})
				var now, most atomic.Int64
				var got sync.Map
				r := w.run(t, WorkerOptions{Concurrency: 5, Handler: func(_ context.Context, task *Task) error {
					most.Store(max(most.Load(), now.Add(1)))
					time.Sleep(time.Second)
					now.Add(-1)
					got.Store(string(task.Payload), *task)
					return nil
				}})
				for _, p := range names("p", 30) {
					mustAdd(t, w.client, p)
				}
				time.Sleep(time.Minute)
				if err := r.end(); err != nil {
					t.Errorf("Run: %v", err)
				}
				if s := w.nodes["n0"].states(); s["done"] != 30 {
					t.Errorf("states %v, want 30 done", s)
				}
				if most.Load() > 5 || most.Load() < 4 {
					t.Errorf("%d handlers ran at a time, want 5", most.Load())
				}
				one, ok := got.Load("p7")
				if !ok {
					t.Fatal("p7 was never handled")
				}
				if x := one.(Task); x.ID == 0 || x.Attempt != 1 || x.Delivery != 1 || x.Priority != task.DefaultPriority || x.AddedAt.IsZero() || len(x.Token()) == 0 {
					t.Errorf("the handler got %+v", x)
				}
			})
		})
	}
}

// TestFewerSlotsThanPartitions: with one slot and 4 partitions every task is
// found, by polls of one second that take turns.
func TestFewerSlotsThanPartitions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Settings: settings(Settings{WritePartitions: 4})})
		r := w.run(t, WorkerOptions{Concurrency: 1, Handler: func(context.Context, *Task) error { return nil }})
		synctest.Wait()
		for n := range int32(4) {
			if _, err := w.nodes["n0"].add(testQueue.Partition(n), []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(9 * time.Second) // 8 pollers, one second each
		if s := w.nodes["n0"].states(); s["done"] != 4 {
			t.Errorf("states %v, want 4 done", s)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestWorkerFollowsTheCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		node := w.nodes["n0"]
		r := w.run(t, WorkerOptions{Concurrency: 16, PollWait: 10 * time.Second, Handler: func(context.Context, *Task) error { return nil }})
		polled := func(during time.Duration) map[int32]bool {
			node.mu.Lock()
			clear(node.polls)
			node.mu.Unlock()
			time.Sleep(during)
			node.mu.Lock()
			defer node.mu.Unlock()
			at := map[int32]bool{}
			for _, id := range node.polls {
				at[id.Number] = true
			}
			return at
		}
		set := func(read, write int32) {
			node.mu.Lock()
			defer node.mu.Unlock()
			node.counts = counts(read, write)
		}
		set(4, 4)
		time.Sleep(11 * time.Second)
		if at := polled(11 * time.Second); len(at) != 4 {
			t.Errorf("after growth to 4 the partitions %v are polled", at)
		}
		set(2, 2)
		time.Sleep(11 * time.Second)
		if at := polled(11 * time.Second); len(at) != 2 {
			t.Errorf("after shrinkage to 2 the partitions %v are polled", at)
		}
		set(4, 2)
		time.Sleep(11 * time.Second)
		if at := polled(11 * time.Second); len(at) != 4 {
			t.Errorf("after growth to 4 again the partitions %v are polled", at)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestHandlerErrors(t *testing.T) {
	cause := errors.New("cause")
	for _, tc := range []struct {
		name  string
		fails func() error
		check func(f *matchingpb.Failure) bool
		state string
	}{
		{"plain", func() error { return cause }, func(f *matchingpb.Failure) bool {
			return f.GetMessage() == "cause" && !f.GetNonRetryable() && f.GetRetryAfter() == nil
		}, "dead"},
		{"non-retryable", func() error { return fmt.Errorf("outer: %w", NonRetryable(cause)) }, func(f *matchingpb.Failure) bool {
			return f.GetMessage() == "outer: cause" && f.GetNonRetryable()
		}, "dead"},
		{"retry after", func() error { return RetryAfter(cause, 3*time.Second) }, func(f *matchingpb.Failure) bool {
			return f.GetRetryAfter().AsDuration() == 3*time.Second
		}, "dead"},
		{"panic", func() error { panic("ouch") }, func(f *matchingpb.Failure) bool {
			return strings.Contains(f.GetMessage(), "panicked: ouch") && strings.Contains(string(f.GetDetails()), "worker_test.go")
		}, "dead"},
		{"marked nil", func() error { return NonRetryable(RetryAfter(nil, time.Second)) }, nil, "done"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, Options{})
				r := w.run(t, WorkerOptions{Handler: func(context.Context, *Task) error { return tc.fails() }})
				mustAdd(t, w.client, "x")
				synctest.Wait()
				if err := r.end(); err != nil {
					t.Error(err)
				}
				node := w.nodes["n0"]
				if s := node.states(); s[tc.state] != 1 {
					t.Errorf("states %v, want one %s", s, tc.state)
				}
				if (tc.check != nil) != (len(node.failures) == 1) || (tc.check != nil && !tc.check(node.failures[0])) {
					t.Errorf("failures %v", node.failures)
				}
			})
		})
	}
}

func TestReleaseSentinel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		var deliveries atomic.Int64
		r := w.run(t, WorkerOptions{Handler: func(_ context.Context, x *Task) error {
			if deliveries.Add(1); x.Delivery < 3 {
				return fmt.Errorf("busy: %w", ErrRelease)
			}
			return nil
		}})
		mustAdd(t, w.client, "x")
		synctest.Wait()
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if s := w.nodes["n0"].states(); s["done"] != 1 || deliveries.Load() != 3 {
			t.Errorf("states %v after %d deliveries, want one done after 3", s, deliveries.Load())
		}
	})
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		r := w.run(t, WorkerOptions{Handler: func(ctx context.Context, _ *Task) error {
			select {
			case <-time.After(100 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}})
		for _, p := range names("p", 10) {
			mustAdd(t, w.client, p)
		}
		time.Sleep(101 * time.Second)
		if err := r.end(); err != nil {
			t.Error(err)
		}
		node := w.nodes["n0"]
		if s := node.states(); s["done"] != 10 {
			t.Errorf("states %v, want 10 done", s)
		}
		// A lease of 30 s, extended every 10 s: 9 or 10 times in 100 s.
		for id, n := range node.beats {
			if n < 9 || n > 11 {
				t.Errorf("task %v: %d heartbeats in 100 s", id, n)
			}
		}
		if n := node.count("HeartbeatTasks"); n > 12 || len(node.beats) != 10 {
			t.Errorf("%d calls for the heartbeats of %d tasks, want at most 12", n, len(node.beats))
		}
	})
}

func TestLostLeases(t *testing.T) {
	for name, tc := range map[string]struct {
		heard error
		cause error
		after time.Duration
	}{
		"lost":      {task.Errorf(task.LeaseLost, "gone"), ErrLeaseLost, 10 * time.Second},
		"cancelled": {task.Errorf(task.Cancelled, "gone"), ErrTaskCancelled, 10 * time.Second},
		"node away": {task.Errorf(task.NotReady, "loading"), ErrLeaseLost, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, Options{})
				w.nodes["n0"].heard = func(task.ID) error { return tc.heard }
				began := time.Now()
				ended := make(chan error, 1)
				r := w.run(t, WorkerOptions{Handler: func(ctx context.Context, _ *Task) error {
					<-ctx.Done()
					ended <- context.Cause(ctx)
					return errors.New("unfinished")
				}})
				mustAdd(t, w.client, "x")
				if cause := <-ended; !errors.Is(cause, tc.cause) {
					t.Errorf("the handler's context ended with %v, want %v", cause, tc.cause)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("it ended after %v, want %v", took, tc.after)
				}
				if err := r.end(); err != nil {
					t.Error(err)
				}
				if n := w.nodes["n0"].count("FailTask"); n != 0 {
					t.Errorf("a task that is no longer ours was failed %d times", n)
				}
			})
		})
	}
}

func TestWorkDoneCountsThoughTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		w.nodes["n0"].heard = func(task.ID) error { return task.Errorf(task.LeaseLost, "late") }
		r := w.run(t, WorkerOptions{Handler: func(ctx context.Context, _ *Task) error {
			<-ctx.Done()
			return nil
		}})
		mustAdd(t, w.client, "x")
		time.Sleep(time.Minute)
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if s := w.nodes["n0"].states(); s["done"] != 1 {
			t.Errorf("states %v, want one done", s)
		}
	})
}

func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		began := time.Now()
		r := w.run(t, WorkerOptions{Concurrency: 4, Handler: func(ctx context.Context, _ *Task) error {
			select {
			case <-time.After(20 * time.Second):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}})
		for _, p := range names("p", 3) {
			mustAdd(t, w.client, p)
		}
		synctest.Wait()
		r.stop()
		synctest.Wait()
		mustAdd(t, w.client, "late")
		if err := <-r.err; err != nil {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(began); took != 20*time.Second {
			t.Errorf("Run returned after %v, want 20s: when the handlers are done", took)
		}
		if s := w.nodes["n0"].states(); s["done"] != 3 || s["ready"] != 1 {
			t.Errorf("states %v, want 3 done and the late one ready", s)
		}
	})
}

// TestGrantsWhileStoppingAreReleased: the answer of a poll is held back on the
// way while the worker stops.
func TestGrantsWhileStoppingAreReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		node := w.nodes["n0"]
		hold := make(chan struct{})
		node.before = func(_ context.Context, method string, _ partition.ID) error {
			if method == "PollTask" {
				<-hold // it has not reached the queue yet: cancelling does not find it
			}
			return nil
		}
		var handled atomic.Int64
		r := w.run(t, WorkerOptions{Concurrency: 4, Handler: func(context.Context, *Task) error { handled.Add(1); return nil }})
		for _, p := range names("p", 3) {
			mustAdd(t, w.client, p)
		}
		synctest.Wait()
		r.stop()
		synctest.Wait()
		close(hold)
		if err := <-r.err; err != nil {
			t.Errorf("Run: %v", err)
		}
		if s := node.states(); s["ready"] != 3 || handled.Load() != 0 {
			t.Errorf("states %v, %d handled, want 3 ready again and none handled", s, handled.Load())
		}
		if node.count("CancelPoll") == 0 {
			t.Error("no poll was cancelled")
		}
	})
}

func TestDrainTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		began := time.Now()
		release := make(chan struct{})
		r := w.run(t, WorkerOptions{DrainTimeout: 7 * time.Second, Handler: func(ctx context.Context, x *Task) error {
			if string(x.Payload) == "stubborn" {
				<-release
				return nil
			}
			<-ctx.Done()
			return context.Cause(ctx)
		}})
		mustAdd(t, w.client, "polite")
		mustAdd(t, w.client, "stubborn")
		synctest.Wait()
		err := r.end()
		if err == nil || !strings.Contains(err.Error(), "1 handlers") {
			t.Errorf("Run: %v, want an error that counts the one that still runs", err)
		}
		if took := time.Since(began); took != 7*time.Second+abandonGrace {
			t.Errorf("Run returned after %v", took)
		}
		if s := w.nodes["n0"].states(); s["ready"] != 1 || s["leased"] != 1 {
			t.Errorf("states %v, want the polite one's task ready again", s)
		}
		close(release)
		synctest.Wait()
	})
}

func TestWorkerOutlivesItsNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		node := w.nodes["n0"]
		r := w.run(t, WorkerOptions{Concurrency: 2, Handler: func(context.Context, *Task) error { time.Sleep(3 * time.Second); return nil }})
		mustAdd(t, w.client, "before")
		synctest.Wait()
		w.cut("n0")
		time.Sleep(10 * time.Second) // the handler ends meanwhile
		w.serve("n0")
		mustAdd(t, w.client, "after")
		time.Sleep(30 * time.Second)
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if s := node.states(); s["done"] != 2 {
			t.Errorf("states %v, want both done", s)
		}
	})
}

func TestPollIDIsKeptWhileGrantsMayBeOnTheirWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		node := w.nodes["n0"]
		var ids []string
		node.before = func(context.Context, string, partition.ID) error { return nil }
		r := w.run(t, WorkerOptions{Concurrency: 1, PollsPerPartition: 1, PollWait: 10 * time.Second, Handler: func(context.Context, *Task) error { return nil }})
		note := func() {
			synctest.Wait()
			node.mu.Lock()
			defer node.mu.Unlock()
			for id := range node.polls {
				if !slices.Contains(ids, id) {
					ids = append(ids, id)
				}
			}
		}
		note()
		w.cut("n0") // breaks the poll
		time.Sleep(5 * time.Second)
		w.serve("n0")
		time.Sleep(4 * time.Second)
		note()
		if len(ids) != 1 {
			t.Errorf("the broken poll was repeated under another id: %v", ids)
		}
		time.Sleep(20 * time.Second)
		note()
		if len(ids) < 2 {
			t.Errorf("polls that were answered share their id: %v", ids)
		}
		if err := r.end(); err != nil {
			t.Error(err)
		}
	})
}

func TestServerTellsTheWorkerToStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		r := newRun(t.Context(), mustWorker(t, w.client))
		p := &poller{run: r, trip: &trip{client: w.client, id: testQueue.Partition(0)}}
		for range 2 { // both pollers hear it
			p.next(&matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_WORKER_SHUTDOWN}, nil)
		}
		select {
		case <-r.told:
		default:
			t.Error("WORKER_SHUTDOWN did not stop the run")
		}
		if wait := p.next(&matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN}, nil); wait < 50*time.Millisecond {
			t.Errorf("after SHUTDOWN the next poll comes in %v, want at least 50ms", wait)
		}
		close(r.ended)
		r.hangUp()
		r.abandon(nil)
	})
}

func mustWorker(t testing.TB, c *Client) *Worker {
	t.Helper()
	w, err := NewWorker(c, WorkerOptions{Queue: testQueue, Handler: func(context.Context, *Task) error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRunStress starts and stops workers at every moment.
func TestRunStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Settings: settings(Settings{WritePartitions: 3})})
		added := 0
		for i := range 60 {
			r := w.run(t, WorkerOptions{Concurrency: 1 + i%5, Handler: func(context.Context, *Task) error {
				time.Sleep(time.Duration(i) * time.Millisecond)
				return nil
			}})
			for range i % 7 {
				mustAdd(t, w.client, "x")
				added++
			}
			time.Sleep(time.Duration(i*i) * time.Microsecond)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if s := w.nodes["n0"].states(); s["leased"] != 0 {
				t.Fatalf("round %d: states %v: a grant is left behind", i, s)
			}
		}
		if s := w.nodes["n0"].states(); s["done"]+s["ready"] != added {
			t.Errorf("states %v, %d were added", s, added)
		}
	})
}
