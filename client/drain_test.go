package client

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

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

func mustWorker(tb testing.TB, c *Client) *Worker {
	tb.Helper()
	w, err := NewWorker(c, WorkerOptions{Queue: testQueue, Handler: func(context.Context, *Task) error { return nil }})
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// TestRunStress starts and stops workers at every moment.
func TestRunStress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Queues: numbered(3)})
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
