package server

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a server over a store in memory, with a connection to it.
type node struct {
	matchingpb.MatchingServiceClient
	t       testing.TB
	store   *memory.Store
	engine  *engine.Engine
	handler *Handler
	server  *Server
	conn    *grpc.ClientConn
}

// parts are the configurations that a test may change.
type parts struct {
	store   memory.Options
	engine  engine.Config
	handler HandlerConfig
	server  Config
}

func start(tb testing.TB, change ...func(*parts)) *node {
	tb.Helper()
	p := parts{engine: engine.Config{Holder: task.Holder{Node: "node-1", RunID: "run-1", Address: "node-1:7233"}}}
	for _, c := range change {
		c(&p)
	}
	n := &node{t: tb, store: memory.New(p.store)}
	p.engine.Store = n.store
	var err error
	if n.engine, err = engine.New(p.engine); err != nil {
		tb.Fatal(err)
	}
	p.handler.Engine = n.engine
	if n.handler, err = NewHandler(p.handler); err != nil {
		tb.Fatal(err)
	}
	p.server.Handler = n.handler
	if n.server, err = New(p.server); err != nil {
		tb.Fatal(err)
	}
	n.engine.Start()
	l := bufconn.Listen(1 << 20)
	n.server.Serve(l)
	n.server.SetServing(true)
	n.conn, err = grpc.NewClient("passthrough:///node",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		tb.Fatal(err)
	}
	n.MatchingServiceClient = matchingpb.NewMatchingServiceClient(n.conn)
	return n
}

func (n *node) stop() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := n.conn.Close(); err != nil {
		n.t.Errorf("closing the connection: %v", err)
	}
	if err := n.server.Stop(ctx); err != nil {
		n.t.Errorf("stopping the server: %v", err)
	}
	if err := n.engine.Stop(ctx); err != nil {
		n.t.Errorf("stopping the engine: %v", err)
	}
	if err := n.store.Close(); err != nil {
		n.t.Errorf("closing the store: %v", err)
	}
}

// root names the root partition of a queue.
func root(queue string) *matchingpb.TaskQueuePartition { return part(queue, 0) }

func part(queue string, number int32) *matchingpb.TaskQueuePartition {
	return &matchingpb.TaskQueuePartition{Namespace: "default", Name: queue, Partition: &number}
}

// partitionOf is what root names, to the engine.
func partitionOf(name string) partition.ID {
	return partition.Queue{Namespace: "default", Name: name, Type: partition.Activity}.Partition(0)
}

// pollNow takes one task, waiting only for the partition to read it.
var pollNow = queue.PollRequest{Max: 1, Wait: 5 * time.Second}

// add adds a task and fails the test when that fails.
func (n *node) add(queue, payload string) uint64 {
	n.t.Helper()
	got, err := n.AddTask(n.t.Context(), &matchingpb.AddTaskRequest{TaskQueue: root(queue), Payload: []byte(payload)})
	if err != nil {
		n.t.Fatalf("AddTask: %v", err)
	}
	return got.GetId()
}

// poll polls for up to max tasks and fails the test when that fails.
func (n *node) poll(queue string, most int32) *matchingpb.PollTaskResponse {
	n.t.Helper()
	got, err := n.PollTask(n.t.Context(), &matchingpb.PollTaskRequest{TaskQueue: root(queue), MaxTasks: most, Identity: "tester"})
	if err != nil {
		n.t.Fatalf("PollTask: %v", err)
	}
	return got
}

func TestAddPollComplete(t *testing.T) {
	n := start(t)
	defer n.stop()
	want := map[string]bool{}
	for i := range 10 {
		payload := fmt.Sprint("task ", i)
		want[payload] = true
		n.add("orders", payload)
	}
	for len(want) > 0 {
		for _, g := range n.poll("orders", 4).GetTasks() {
			if !want[string(g.GetPayload())] {
				t.Errorf("%q came twice or from nowhere", g.GetPayload())
			}
			delete(want, string(g.GetPayload()))
			if _, err := n.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: g.GetToken()}); err != nil {
				t.Errorf("CompleteTask: %v", err)
			}
		}
	}
}
