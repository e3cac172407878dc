package server

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
)

// TestPollWaits: how long an empty poll takes, by what it asks for and by the
// deadline of its call.
func TestPollWaits(t *testing.T) {
	for name, tc := range map[string]struct {
		deadline time.Duration // 0: none
		wait     *durationpb.Duration
		want     time.Duration
	}{
		"the node's setting":              {0, nil, time.Minute},
		"a second before the deadline":    {10 * time.Second, nil, 9 * time.Second},
		"a short deadline":                {time.Second, nil, 750 * time.Millisecond},
		"what it asks for":                {10 * time.Second, durationpb.New(3 * time.Second), 3 * time.Second},
		"more than the deadline leaves":   {10 * time.Second, durationpb.New(time.Hour), 9 * time.Second},
		"not at all":                      {0, durationpb.New(0), 0},
		"longer than the node's setting":  {0, durationpb.New(5 * time.Minute), 5 * time.Minute},
		"the setting before the deadline": {time.Hour, nil, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := start(t)
				defer n.stop()
				ctx := t.Context()
				if tc.deadline > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.deadline)
					defer cancel()
				}
				began := time.Now()
				got, err := n.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: root("q"), Wait: tc.wait})
				// The deadline travels as a timeout, cut to what its text can hold.
				if took := time.Since(began); err != nil || took > tc.want || took < tc.want-tc.want/100 {
					t.Errorf("took %v, %v; want %v", took, err, tc.want)
				}
				if got.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT || len(got.GetTasks()) != 0 || got.GetCounts().GetRead() != 1 {
					t.Errorf("got %v, want a timeout and the counts", got)
				}
			})
		})
	}
}

// TestAddWakesPoll: a task that is added meets the poll that waits, at once.
func TestAddWakesPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		var got *matchingpb.PollTaskResponse
		var waiting sync.WaitGroup
		waiting.Go(func() { got = n.poll("q", 1) })
		time.Sleep(10 * time.Second)
		began := time.Now()
		n.add("q", "x")
		waiting.Wait()
		if len(got.GetTasks()) != 1 || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want the task at once", got, time.Since(began))
		}
	})
}

// TestPollBytes: an answer stays within what clients take by default, also when
// the tasks are large and the poll wants many; a first task is never held back.
func TestPollBytes(t *testing.T) {
	n := start(t)
	defer n.stop()
	const tasks, size = 12, 600_000
	for range tasks {
		n.add("q", strings.Repeat("x", size))
	}
	ask := func(maxBytes int64) int {
		got, err := n.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: root("q"), MaxTasks: 100, MaxBytes: maxBytes})
		if err != nil {
			t.Fatal(err)
		}
		return len(got.GetTasks())
	}
	for _, tc := range []struct {
		maxBytes int64
		want     int
	}{{0, 3}, {1, 1}, {2 * size, 2}, {2*size - 1, 1}, {1 << 30, 3}} {
		if got := ask(tc.maxBytes); got != tc.want {
			t.Errorf("max_bytes %d: %d tasks, want %d", tc.maxBytes, got, tc.want)
		}
	}
}

func TestCancelPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		cancel := func(id string) *matchingpb.CancelPollResponse {
			got, err := n.CancelPoll(t.Context(), &matchingpb.CancelPollRequest{TaskQueue: root("q"), PollId: id})
			if err != nil {
				t.Errorf("CancelPoll: %v", err)
			}
			return got
		}
		if cancel("p").GetFound() {
			t.Error("a poll was found on a partition that is not loaded")
		}
		var got *matchingpb.PollTaskResponse
		var waiting sync.WaitGroup
		waiting.Go(func() {
			got, _ = n.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: root("q"), PollId: "p"})
		})
		time.Sleep(time.Second)
		if cancel("other").GetFound() || !cancel("p").GetFound() || cancel("p").GetFound() {
			t.Error("want exactly the poll of that id to be found, once")
		}
		waiting.Wait()
		if got.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_CANCELLED {
			t.Errorf("the poll ended with %v, want CANCELLED", got)
		}
		if _, err := n.CancelPoll(t.Context(), &matchingpb.CancelPollRequest{TaskQueue: root("q")}); reason(err) != "INVALID" {
			t.Errorf("without an id: %v, want INVALID", err)
		}
	})
}

// TestCallersThatLeave: polls that are given up at random, while tasks are
// added, leave no lease behind: whatever was not received is handed out again at
// once.
func TestCallersThatLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := start(t)
		defer n.stop()
		const tasks = 300
		var received atomic.Int64
		var callers sync.WaitGroup
		for seed := range uint64(8) {
			callers.Go(func() {
				rng := rand.New(rand.NewPCG(seed, 3))
				for received.Load() < tasks/2 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rng.IntN(2000))*time.Microsecond)
					got, err := n.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: root("q"), Wait: durationpb.New(time.Minute)})
					cancel()
					if err != nil {
						continue
					}
					for _, g := range got.GetTasks() {
						received.Add(1)
						if _, err := n.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: g.GetToken()}); err != nil {
							t.Errorf("CompleteTask: %v", err)
						}
					}
				}
			})
		}
		for i := range tasks {
			n.add("q", strconv.Itoa(i))
			time.Sleep(time.Duration(i%7) * 300 * time.Microsecond)
		}
		callers.Wait()
		synctest.Wait()
		q, _ := n.engine.Loaded(partitionOf("q"))
		// No time passes from here on: a lease that was left would still be there.
		if s := q.Describe(); s.Leased != 0 || s.Backlog != tasks-received.Load() {
			t.Errorf("%d leased, %d in the backlog after %d of %d were completed", s.Leased, s.Backlog, received.Load(), tasks)
		}
	})
}

// TestUndelivered: when gRPC says that a reply could not be sent, its grants are
// released; when it was sent they are not.
func TestUndelivered(t *testing.T) {
	for _, sendError := range []error{nil, errors.New("the stream is gone")} {
		n := start(t)
		n.add("q", "x")
		e := &edge{handler: n.handler}
		ctx := e.TagRPC(t.Context(), &stats.RPCTagInfo{})
		ctx = grpc.NewContextWithServerTransportStream(ctx, silentStream{})
		got, err := n.handler.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: root("q")})
		if err != nil || len(got.GetTasks()) != 1 {
			t.Fatalf("PollTask = %v, %v", got, err)
		}
		e.HandleRPC(ctx, &stats.End{Error: sendError})
		q, _ := n.engine.Loaded(partitionOf("q"))
		if leased := q.Describe().Leased; (leased == 0) != (sendError != nil) {
			t.Errorf("sending ended with %v: %d leased", sendError, leased)
		}
		n.stop()
	}
}

// silentStream takes headers and trailers of a call that has no connection.
type silentStream struct{ grpc.ServerTransportStream }

func (silentStream) SetTrailer(metadata.MD) error { return nil }

// TestStop: with 1,000 polls waiting and a health watch open, a stop ends all of
// them at once, each poll with the reason, and loses no task.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const polls = 1000
		n := start(t)
		var ended atomic.Int64
		var waiting sync.WaitGroup
		for range polls {
			waiting.Go(func() {
				got, err := n.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: root("q")})
				if err == nil && got.GetEmptyReason() == matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN {
					ended.Add(1)
				}
			})
		}
		watch, err := healthpb.NewHealthClient(n.conn).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if first, err := watch.Recv(); err != nil || first.GetStatus() != healthpb.HealthCheckResponse_SERVING {
			t.Errorf("health = %v, %v", first, err)
		}
		time.Sleep(time.Second)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := n.server.Stop(ctx); err != nil {
			t.Errorf("Stop: %v", err)
		}
		waiting.Wait()
		if ended.Load() != polls || time.Since(began) != 0 {
			t.Errorf("%d of %d polls ended with SHUTDOWN, in %v", ended.Load(), polls, time.Since(began))
		}
		for err == nil {
			_, err = watch.Recv()
		}
		if errors.Is(err, io.EOF) {
			t.Errorf("the health watch ended as if all was well: %v", err)
		}
		n.stop() // a second time, and the rest
	})
}

// TestStopIsBounded: calls that do not end are broken off.
func TestStopIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := &hangingRouter{came: make(chan struct{})}
		n := start(t, func(p *parts) { p.handler.Unrouted = hanging })
		var caller sync.WaitGroup
		caller.Go(func() {
			unset := &matchingpb.TaskQueuePartition{Namespace: "default", Name: "q"}
			if _, err := n.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: unset}); err == nil {
				t.Error("a call that was broken off succeeded")
			}
		})
		<-hanging.came
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if err := n.server.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("Stop = %v after %v, want the deadline after 3s", err, time.Since(began))
		}
		caller.Wait()
		_ = n.conn.Close()
		_ = n.engine.Stop(t.Context())
	})
}

// TestStopEndsRoutedPolls: a poll that is routed ends with the node's own, also
// when the router would go on.
func TestStopEndsRoutedPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hanging := &hangingRouter{came: make(chan struct{})}
		n := start(t, func(p *parts) { p.handler.Unrouted = hanging })
		var caller sync.WaitGroup
		caller.Go(func() {
			unset := &matchingpb.TaskQueuePartition{Namespace: "default", Name: "q"}
			got, err := n.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: unset})
			if err != nil || got.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN {
				t.Errorf("the routed poll ended with %v, %v, want SHUTDOWN", got, err)
			}
		})
		<-hanging.came
		if err := n.server.Stop(t.Context()); err != nil {
			t.Error(err)
		}
		caller.Wait()
		n.stop()
	})
}

// hangingRouter answers when the caller has left.
type hangingRouter struct {
	matchingpb.UnimplementedMatchingServiceServer
	came chan struct{}
}

func (r *hangingRouter) PollTask(ctx context.Context, _ *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	close(r.came)
	<-ctx.Done()
	return nil, ctx.Err()
}

func (r *hangingRouter) AddTask(ctx context.Context, _ *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	close(r.came)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestAddDuringUnload: adds while the partition is unloaded again and again all
// succeed, because the handler tries once more.
func TestAddDuringUnload(t *testing.T) {
	n := start(t)
	defer n.stop()
	stop := make(chan struct{})
	var unloader sync.WaitGroup
	unloader.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				if _, err := n.UnloadPartition(t.Context(), &matchingpb.UnloadPartitionRequest{TaskQueue: root("q")}); err != nil {
					t.Errorf("UnloadPartition: %v", err)
				}
			}
		}
	})
	refused := 0
	for range 200 {
		_, err := n.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: root("q")})
		switch {
		case reason(err) == "PARTITION_CLOSING": // twice in one call: the caller's turn
			refused++
		case err != nil:
			t.Errorf("AddTask: %v", err)
		}
	}
	close(stop)
	unloader.Wait()
	q, err := n.engine.Queue(t.Context(), partitionOf("q"), engine.Read)
	if err != nil {
		t.Fatal(err)
	}
	got := 0
	for ; got < 200-refused; got++ {
		if r := q.Poll(t.Context(), pollNow); len(r.Grants) != 1 {
			break
		}
	}
	if got != 200-refused {
		t.Errorf("%d of %d accepted tasks are there", got, 200-refused)
	}
	if refused > 100 {
		t.Errorf("%d of 200 adds were refused although they are tried again", refused)
	}
}
