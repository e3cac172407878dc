package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// world is some fake nodes and a client.
type world struct {
	client *Client
	nodes  map[string]*fakeNode

	mu    sync.Mutex
	parts map[string]*served // those that are up
}

// served is a fake node behind a connection that can be cut.
type served struct {
	server   *grpc.Server
	listener *bufconn.Listener
}

var testQueue = partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}

// newWorld starts nodes n0, n1, ... and a client of them. It ends with the test,
// or bubble.
func newWorld(tb testing.TB, nodes int, options Options) *world {
	tb.Helper()
	w := &world{nodes: map[string]*fakeNode{}, parts: map[string]*served{}}
	for i := range nodes {
		address := fmt.Sprintf("n%d", i)
		w.nodes[address] = newFakeNode(address)
		w.serve(address)
		if options.Ring == nil {
			options.Addresses = append(options.Addresses, address)
		}
	}
	options.DialOptions = append(options.DialOptions, grpc.WithContextDialer(w.dial))
	c, err := NewClient(options)
	if err != nil {
		tb.Fatal(err)
	}
	w.client = c
	tb.Cleanup(func() {
		c.Stop()
		for address := range w.nodes {
			w.cut(address)
		}
	})
	return w
}

func (w *world) dial(ctx context.Context, address string) (net.Conn, error) {
	w.mu.Lock()
	p := w.parts[address]
	w.mu.Unlock()
	if p == nil {
		return nil, errors.New("connection refused")
	}
	return p.listener.DialContext(ctx)
}

func (w *world) serve(address string) {
	p := &served{server: grpc.NewServer(), listener: newListener()}
	matchingpb.RegisterMatchingServiceServer(p.server, w.nodes[address])
	go func() { _ = p.server.Serve(p.listener) }()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parts[address] = p
}

// cut kills a node's server; its tasks stay.
func (w *world) cut(address string) {
	w.mu.Lock()
	p := w.parts[address]
	delete(w.parts, address)
	w.mu.Unlock()
	if p != nil {
		p.server.Stop()
		_ = p.listener.Close()
	}
}

func addRequest(payload string) *matchingpb.AddTaskRequest {
	return &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), Payload: []byte(payload)}
}

func mustAdd(tb testing.TB, c *Client, payload string) *matchingpb.AddTaskResponse {
	tb.Helper()
	out, err := c.AddTask(tb.Context(), addRequest(payload))
	if err != nil {
		tb.Fatalf("adding %q: %v", payload, err)
	}
	return out
}

// pollTokens takes up to n tasks.
func pollTokens(tb testing.TB, c *Client, n int) []*matchingpb.TaskGrant {
	tb.Helper()
	out, err := c.PollTask(tb.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), MaxTasks: int32(n), Wait: durationpb.New(0)})
	if err != nil {
		tb.Fatalf("polling: %v", err)
	}
	return out.GetTasks()
}

func settings(s Settings) func() Settings { return func() Settings { return s } }

// numbered gives every queue n partitions.
func numbered(n int32) func(partition.Queue) *QueueSettings {
	return func(partition.Queue) *QueueSettings { return &QueueSettings{Counts: partition.Counts{Write: n}} }
}

func newListener() *bufconn.Listener { return bufconn.Listen(1 << 20) }
