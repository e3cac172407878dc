package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
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
func (w *world) run(tb testing.TB, o WorkerOptions) *running {
	tb.Helper()
	o.Queue = testQueue
	if o.Logger == nil {
		o.Logger = quiet()
	}
	worker, err := NewWorker(w.client, o)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
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
				w := newWorld(t, 1, Options{Queues: numbered(partitions)})
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
		w := newWorld(t, 1, Options{Queues: numbered(4)})
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
				var told []Failure // by the one handler
				r := w.run(t, WorkerOptions{
					Handler:   func(context.Context, *Task) error { return tc.fails() },
					OnFailure: func(_ *Task, f Failure) { told = append(told, f) },
				})
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
				if (tc.check != nil) != (len(told) == 1 && told[0].Dead && told[0].Err != nil) {
					t.Errorf("the user was told of %v", told)
				}
			})
		})
	}
}

// TestOutageIsToldOnce: the log has a line when polls go on failing and one when
// they work again.
func TestOutageIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		w.nodes["n0"].before = once("PollTask", 20, task.Errorf(task.NotReady, "loading"))
		var log strings.Builder
		r := w.run(t, WorkerOptions{
			PollsPerPartition: 1, Handler: func(context.Context, *Task) error { return nil },
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		time.Sleep(5 * time.Minute)
		if err := r.end(); err != nil {
			t.Error(err)
		}
		if failing, over := strings.Count(log.String(), "polling fails"), strings.Count(log.String(), "polling works again"); failing != 1 || over != 1 {
			t.Errorf("%d lines say that polls fail, %d that they work again, want one each:\n%s", failing, over, log.String())
		}
	})
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
