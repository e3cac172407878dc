package cluster

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// plainProxy passes on nothing of a call but its code, message and answer.
func plainProxy() grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		for _, o := range opts {
			if t, ok := o.(grpc.TrailerCallOption); ok {
				clear(*t.TrailerAddr)
			}
		}
		return status.Error(status.Code(err), status.Convert(err).Message())
	}
}

// TestStaleCounts: a client whose settings say 8 partitions meets a node that has
// 2. It learns at its first refused call, and no caller notices.
func TestStaleCounts(t *testing.T) {
	eight := &client.QueueSettings{Counts: partition.Counts{Read: 8, Write: 8}}
	queues := func(partition.Queue) *client.QueueSettings { return eight }
	const adds = 100
	for name, tc := range map[string]struct {
		options client.Options
		most    int64 // tries more than adds and polls
	}{
		"direct": {client.Options{Queues: queues}, 2},
		// There nothing is learned but from messages, here from the answer of a poll.
		"through a plain proxy": {client.Options{Queues: queues, DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(plainProxy())}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			node := startNode(t, 2)
			tc.options.Addresses = []string{node.GRPCAddr()}
			c := newClient(t, tc.options)
			if name != "direct" {
				if _, err := c.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodePartition(queue.Partition(0)), Wait: durationpb.New(0), MaxTasks: 1}); err != nil {
					t.Fatal(err)
				}
			}
			at := map[int32]int{}
			for range adds {
				out, err := c.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(queue), Payload: []byte("x")})
				if err != nil {
					t.Fatalf("an add by stale counts: %v", err)
				}
				at[out.GetPartition()]++
			}
			if len(at) != 2 || at[0]+at[1] != adds {
				t.Errorf("adds by partition %v, want all in 0 and 1", at)
			}
			if s := c.Stats(); s.Recounts > tc.most || s.Calls > adds+1+tc.most {
				t.Errorf("%+v for %d adds, want at most %d more calls than that", s, adds, tc.most)
			}
		})
	}
}
