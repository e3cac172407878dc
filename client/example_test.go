package client_test

import (
	"context"
	"fmt"
	"net"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// A frontend embeds the client: it adds tasks to whole queues, and each goes
// straight to the node that owns its partition.
func ExampleNewClient() {
	node := startNode()
	defer node.stop()
	c, err := client.NewClient(client.Options{
		Addresses:   []string{"10.0.0.1:7233"},
		DialOptions: node.dial, // real ones bring transport credentials here
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Stop()
	out, err := c.AddTask(context.Background(), &matchingpb.AddTaskRequest{
		TaskQueue: &matchingpb.TaskQueuePartition{Namespace: "default", Name: "mails"},
		Payload:   []byte("welcome, user 17"),
		Options:   &matchingpb.TaskOptions{Headers: map[string]string{"lang": "en"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("added to partition", out.GetPartition())
	// Output: added to partition 0
}

// A worker runs a handler for each task until its context ends, then lets what
// runs finish.
func ExampleWorker() {
	node := startNode("welcome, user 17")
	defer node.stop()
	c, err := client.NewClient(client.Options{Addresses: []string{"10.0.0.1:7233"}, DialOptions: node.dial})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Stop()
	ctx, stop := context.WithCancel(context.Background()) // as by signal.NotifyContext
	worker, err := client.NewWorker(c, client.WorkerOptions{
		Queue:       partition.Queue{Namespace: "default", Name: "mails", Type: partition.Activity},
		Concurrency: 8,
		Handler: func(_ context.Context, t *client.Task) error {
			fmt.Printf("sending %q, attempt %d\n", t.Payload, t.Attempt)
			stop() // this example has one task
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := worker.Run(ctx); err != nil {
		fmt.Println(err)
	}
	fmt.Println("completed", node.completed)
	// Output:
	// sending "welcome, user 17", attempt 1
	// completed 1
}

// exampleNode is just enough of a node for the examples.
type exampleNode struct {
	matchingpb.UnimplementedMatchingServiceServer

	dial []grpc.DialOption
	stop func()

	cancelled chan struct{}

	mu        sync.Mutex
	payloads  []string
	completed int
}

func startNode(payloads ...string) *exampleNode {
	listener, server := bufconn.Listen(1<<16), grpc.NewServer()
	n := &exampleNode{stop: server.Stop, payloads: payloads, cancelled: make(chan struct{}, 2)}
	n.dial = []grpc.DialOption{grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) })}
	matchingpb.RegisterMatchingServiceServer(server, n)
	go func() { _ = server.Serve(listener) }()
	return n
}

func (n *exampleNode) AddTask(context.Context, *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	return &matchingpb.AddTaskResponse{Id: 1}, nil
}

func (n *exampleNode) PollTask(ctx context.Context, in *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	id, err := wire.DecodePartition("task_queue", in.GetTaskQueue())
	if err != nil {
		return nil, wire.ToStatus(err)
	}
	n.mu.Lock()
	payloads := n.payloads
	n.payloads = nil
	n.mu.Unlock()
	if len(payloads) == 0 {
		select {
		case <-n.cancelled:
			return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_CANCELLED}, nil
		case <-ctx.Done():
			return nil, wire.ToStatus(ctx.Err())
		}
	}
	granted := make([]wire.Granted, len(payloads))
	for i, p := range payloads {
		made := task.MakeID(1, uint64(i+1))
		granted[i] = wire.Granted{
			Partition: id, Grant: task.Grant{ID: made, Delivery: 1, Epoch: 1}, Attempt: 1,
			Task: &task.Task{ID: made, Payload: []byte(p), Priority: task.DefaultPriority},
		}
	}
	return &matchingpb.PollTaskResponse{Batches: wire.EncodeColumns(granted)}, nil
}

func (n *exampleNode) CancelPoll(context.Context, *matchingpb.CancelPollRequest) (*matchingpb.CancelPollResponse, error) {
	n.cancelled <- struct{}{}
	return &matchingpb.CancelPollResponse{Found: true}, nil
}

func (n *exampleNode) CompleteTask(context.Context, *matchingpb.CompleteTaskRequest) (*matchingpb.CompleteTaskResponse, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.completed++
	return &matchingpb.CompleteTaskResponse{}, nil
}
