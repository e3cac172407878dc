package cluster

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var queue = partition.Queue{Namespace: "default", Name: "orders", Type: partition.Activity}

// startNode starts a node with its own store and a client within it that serves
// what names no partition, as the command does. It ends with the test.
func startNode(tb testing.TB, partitions int32) *matching.Node {
	tb.Helper()
	registry, err := dynamicconfig.NewRegistry(matching.Declared()...)
	if err != nil {
		tb.Fatal(err)
	}
	settings, err := registry.Parse(fmt.Appendf(nil, "matching.numTaskqueueWritePartitions: %d", partitions))
	if err != nil {
		tb.Fatal(err)
	}
	node, err := matching.New(matching.Config{
		Name: "node-1", DataDir: tb.TempDir(), GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0",
		Settings: live.New(settings),
	})
	if err != nil {
		tb.Fatal(err)
	}
	address := node.GRPCAddr()
	router := newClient(tb, client.Options{Addresses: []string{address}, Direct: func(to string) matchingpb.MatchingServiceServer {
		if to != address {
			return nil
		}
		return node.Direct()
	}})
	node.SetUnrouted(client.NewFrontend(router))
	if err := node.Start(tb.Context()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), matching.DefaultStopTimeout)
		defer cancel()
		if err := node.Stop(ctx); err != nil {
			tb.Errorf("stopping the node: %v", err)
		}
	})
	return node
}

func newClient(tb testing.TB, o client.Options) *client.Client {
	tb.Helper()
	c, err := client.NewClient(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	return c
}

// bareStub is what a program in another language has: no routing, no batching.
func bareStub(tb testing.TB, node *matching.Node) matchingpb.MatchingServiceClient {
	tb.Helper()
	conn, err := grpc.NewClient(node.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return matchingpb.NewMatchingServiceClient(conn)
}

// receipts counts what handlers got.
type receipts struct {
	mu       sync.Mutex
	byNumber map[string]int
	want     int
	all      chan struct{} // closed when want different ones came
}

func newReceipts(want int) *receipts {
	return &receipts{byNumber: map[string]int{}, want: want, all: make(chan struct{})}
}

func (r *receipts) note(payload []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byNumber[string(payload)]++
	if len(r.byNumber) == r.want && r.byNumber[string(payload)] == 1 {
		close(r.all)
	}
}

// await fails unless everything came, once.
func (r *receipts) await(tb testing.TB) {
	tb.Helper()
	select {
	case <-r.all:
	case <-tb.Context().Done():
		tb.Fatal("the test ended before every task came")
	case <-time.After(time.Minute):
		r.mu.Lock()
		defer r.mu.Unlock()
		tb.Fatalf("%d of %d tasks came within a minute", len(r.byNumber), r.want)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for number, times := range r.byNumber {
		if times != 1 {
			tb.Errorf("task %s came %d times", number, times)
		}
	}
}

// work runs a worker until the returned function is called.
func work(tb testing.TB, c *client.Client, concurrency int, h client.Handler) (stop func()) {
	tb.Helper()
	w, err := client.NewWorker(c, client.WorkerOptions{Queue: queue, Handler: h, Concurrency: concurrency, Identity: "tester"})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			tb.Errorf("the worker: %v", err)
		}
	}
}

// produce adds n tasks, numbered, by many callers at a time.
func produce(tb testing.TB, stub matchingpb.MatchingServiceClient, n, callers int) {
	tb.Helper()
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for {
				number := next.Add(1)
				if number > int64(n) {
					return
				}
				_, err := stub.AddTask(tb.Context(), &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(queue), Payload: strconv.AppendInt(nil, number, 10)})
				if err != nil {
					tb.Errorf("adding task %d: %v", number, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func drained(tb testing.TB, stub matchingpb.MatchingServiceClient) {
	tb.Helper()
	d, err := stub.DescribeTaskQueue(tb.Context(), &matchingpb.DescribeTaskQueueRequest{TaskQueue: wire.EncodeQueue(queue)})
	if err != nil {
		tb.Fatal(err)
	}
	if s := d.GetStats(); s.GetReady()+s.GetScheduled()+s.GetLeased()+s.GetDead() != 0 || len(d.GetMissing()) != 0 {
		tb.Errorf("the queue is not empty: %v", d)
	}
}

func TestEveryTaskComesOnce(t *testing.T) {
	for _, partitions := range []int32{1, 4} {
		for _, way := range []string{"routed", "through a node"} {
			t.Run(fmt.Sprintf("%d partitions, %s", partitions, way), func(t *testing.T) {
				node := startNode(t, partitions)
				routed := newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}})
				var stub matchingpb.MatchingServiceClient = routed
				if way != "routed" {
					stub = bareStub(t, node)
				}
				const tasks = 3000
				got := newReceipts(tasks)
				stop := work(t, newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}}), 16, func(_ context.Context, x *client.Task) error {
					got.note(x.Payload)
					return nil
				})
				produce(t, stub, tasks, 64)
				got.await(t)
				stop()
				drained(t, stub)
			})
		}
	}
}

// TestBacklogDrains adds first, then works with fewer slots than partitions.
func TestBacklogDrains(t *testing.T) {
	node := startNode(t, 4)
	c := newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}})
	b := &matchingpb.AddBatch{TaskQueue: wire.EncodeQueue(queue)}
	for i := range 1000 {
		b.Payloads = append(b.Payloads, strconv.AppendInt(nil, int64(i), 10))
	}
	out, err := c.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{b}})
	if err != nil || len(out.GetResults()[0].GetErrors()) != 0 {
		t.Fatalf("AddTasks: %v, %v", out, err)
	}
	got := newReceipts(1000)
	stop := work(t, c, 3, func(_ context.Context, x *client.Task) error {
		got.note(x.Payload)
		return nil
	})
	got.await(t)
	stop()
	drained(t, c)
}

func TestFailuresComeAgain(t *testing.T) {
	node := startNode(t, 1)
	c := newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}})
	const tasks = 200
	got := newReceipts(tasks)
	stop := work(t, c, 16, func(_ context.Context, x *client.Task) error {
		number, err := strconv.Atoi(string(x.Payload))
		switch {
		case err != nil:
			return client.NonRetryable(err)
		case number%3 == 0 && x.Attempt == 1:
			return client.RetryAfter(errors.New("not yet"), time.Millisecond)
		case number%5 == 0 && x.Delivery == 1:
			return client.ErrRelease
		}
		got.note(x.Payload)
		return nil
	})
	produce(t, c, tasks, 8)
	got.await(t)
	stop()
	drained(t, c)
}

// TestCallsByOtherLanguages makes the calls of a program that has only the
// generated code.
func TestCallsByOtherLanguages(t *testing.T) {
	node := startNode(t, 2)
	stub := bareStub(t, node)
	q := wire.EncodeQueue(queue)
	added, err := stub.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: q, Payload: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := stub.GetTask(t.Context(), &matchingpb.GetTaskRequest{TaskQueue: wire.EncodePartition(queue.Partition(added.GetPartition())), Id: added.GetId()}); err != nil || string(got.GetTask().GetPayload()) != "1" {
		t.Errorf("GetTask: %v, %v", got, err)
	}
	if got, err := stub.PeekTasks(t.Context(), &matchingpb.PeekTasksRequest{TaskQueue: q}); err != nil || len(got.GetTasks())+len(got.GetNextPageToken()) == 0 {
		t.Errorf("PeekTasks: %v, %v", got, err)
	}
	if got, err := stub.ListTaskQueues(t.Context(), &matchingpb.ListTaskQueuesRequest{}); err != nil || len(got.GetTaskQueues()) != 1 {
		t.Errorf("ListTaskQueues: %v, %v", got, err)
	}
	grant := pollOne(t, stub)
	if beat, err := stub.HeartbeatTask(t.Context(), &matchingpb.HeartbeatTaskRequest{Token: grant.GetToken()}); err != nil || beat.GetLeaseDuration().AsDuration() <= 0 {
		t.Errorf("HeartbeatTask: %v, %v", beat, err)
	}
	if _, err := stub.ReleaseTask(t.Context(), &matchingpb.ReleaseTaskRequest{Token: grant.GetToken()}); err != nil {
		t.Errorf("ReleaseTask: %v", err)
	}
	again := pollOne(t, stub)
	if again.GetDelivery() != 2 || again.GetAttempt() != 1 {
		t.Errorf("after a release the task comes with delivery %d, attempt %d, want 2 and 1", again.GetDelivery(), again.GetAttempt())
	}
	if _, err := stub.FailTask(t.Context(), &matchingpb.FailTaskRequest{Token: grant.GetToken()}); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("FailTask with the old token: %v", err)
	}
	if _, err := stub.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: again.GetToken()}); err != nil {
		t.Errorf("CompleteTask: %v", err)
	}
	drained(t, stub)
}

// pollOne polls until a task comes: each poll goes to one of the partitions.
func pollOne(tb testing.TB, stub matchingpb.MatchingServiceClient) *matchingpb.TaskGrant {
	tb.Helper()
	for range 1000 {
		out, err := stub.PollTask(tb.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(queue), Wait: durationpb.New(10 * time.Millisecond)})
		if err != nil {
			tb.Fatal(err)
		}
		if len(out.GetTasks()) > 0 {
			return out.GetTasks()[0]
		}
	}
	tb.Fatal("no task came in 1000 polls")
	return nil
}

// TestWorkerStopsAtOnce: a worker that waits for tasks is gone as soon as it is
// told, and leaves nothing behind.
func TestWorkerStopsAtOnce(t *testing.T) {
	node := startNode(t, 4)
	c := newClient(t, client.Options{Addresses: []string{node.GRPCAddr()}})
	for range 20 {
		stop := work(t, c, 16, func(context.Context, *client.Task) error { return nil })
		began := time.Now()
		stop()
		if took := time.Since(began); took > 4*time.Second { // its polls would wait a minute
			t.Errorf("the worker took %v to stop", took)
		}
	}
}
