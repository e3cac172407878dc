package client

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// echo answers adds and completions without doing anything, so that what is
// measured is the way there and back.
type echo struct {
	matchingpb.UnimplementedMatchingServiceServer

	id atomic.Uint64
}

func (e *echo) AddTask(context.Context, *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	return &matchingpb.AddTaskResponse{Id: e.id.Add(1)}, nil
}

func (e *echo) PollTask(context.Context, *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	return &matchingpb.PollTaskResponse{}, nil
}

func (e *echo) AddTasks(_ context.Context, in *matchingpb.AddTasksRequest) (*matchingpb.AddTasksResponse, error) {
	out := &matchingpb.AddTasksResponse{}
	for _, b := range in.GetBatches() {
		out.Results = append(out.Results, &matchingpb.AddResult{Ids: make([]uint64, len(b.GetPayloads()))})
	}
	return out, nil
}

// newEcho returns a client and a bare stub of the same server.
func newEcho(tb testing.TB) (*Client, matchingpb.MatchingServiceClient) {
	tb.Helper()
	w := &world{parts: map[string]*served{}}
	p := &served{server: grpc.NewServer(), listener: newListener()}
	matchingpb.RegisterMatchingServiceServer(p.server, &echo{})
	go func() { _ = p.server.Serve(p.listener) }()
	w.parts["n0"] = p
	c, err := NewClient(Options{Addresses: []string{"n0"}, DialOptions: []grpc.DialOption{grpc.WithContextDialer(w.dial)}})
	if err != nil {
		tb.Fatal(err)
	}
	cc, err := grpc.NewClient("passthrough:///n0", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(w.dial))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		c.Stop()
		_ = cc.Close()
		p.server.Stop()
	})
	return c, matchingpb.NewMatchingServiceClient(cc)
}

// withDeadline is the context of callers as they should be.
func withDeadline(b *testing.B) context.Context {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	b.Cleanup(cancel)
	return ctx
}

// BenchmarkPlainAdd is the yardstick of BenchmarkLoneAdd: the bare stub.
func BenchmarkPlainAdd(b *testing.B) {
	_, stub := newEcho(b)
	in := &matchingpb.AddTaskRequest{TaskQueue: wire.EncodePartition(testQueue.Partition(0)), Payload: make([]byte, 256)}
	for name, ctx := range map[string]context.Context{"deadline": withDeadline(b), "none": b.Context()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := stub.AddTask(ctx, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkLoneAdd(b *testing.B) {
	c, _ := newEcho(b)
	in := &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), Payload: make([]byte, 256)}
	for name, ctx := range map[string]context.Context{"deadline": withDeadline(b), "none": b.Context()} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.AddTask(ctx, in); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPlainPoll is the yardstick of BenchmarkLonePoll.
func BenchmarkPlainPoll(b *testing.B) {
	_, stub := newEcho(b)
	in := &matchingpb.PollTaskRequest{TaskQueue: wire.EncodePartition(testQueue.Partition(0)), PollId: "poll-1", Identity: "worker"}
	ctx := withDeadline(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stub.PollTask(ctx, in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLonePoll(b *testing.B) {
	c, _ := newEcho(b)
	in := &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), PollId: "poll-1", Identity: "worker"}
	ctx := withDeadline(b)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.PollTask(ctx, in); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkJointAdds is an add with as many callers at a time.
func BenchmarkJointAdds(b *testing.B) {
	for _, callers := range []int{16, 256, 1024} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			c, _ := newEcho(b)
			in := &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), Payload: make([]byte, 256)}
			b.ReportAllocs()
			var left atomic.Int64
			left.Store(int64(b.N))
			var wg sync.WaitGroup
			for range callers {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := c.AddTask(b.Context(), in); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(c.Stats().Calls)/float64(b.N), "calls/op")
		})
	}
}

// newRouting returns a client that knows 100 nodes and spreads by 8, and a queue of
// 128 partitions whose counts a node reported.
func newRouting(tb testing.TB) *Client {
	tb.Helper()
	nodes := make([]ring.Node, 100)
	for i := range nodes {
		nodes[i] = ring.Node{Name: fmt.Sprintf("matching-%03d", i), Weight: 1, Address: fmt.Sprintf("10.0.0.%d:7233", i)}
	}
	r, err := StaticRing(nodes...)
	if err != nil {
		tb.Fatal(err)
	}
	spread := &QueueSettings{Spread: route.SpreadBy(8)}
	c, err := NewClient(Options{Ring: r, Queues: func(partition.Queue) *QueueSettings { return spread }})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Stop)
	c.counts.put(testQueue, PartitionCounts{Counts: partition.Counts{Read: 128, Write: 128}})
	return c
}

// BenchmarkRouteWrite decides where an add goes: counts, partition, node.
func BenchmarkRouteWrite(b *testing.B) {
	c := newRouting(b)
	b.ReportAllocs()
	for b.Loop() {
		id := testQueue.Partition(0)
		id.Number, _ = c.pickWrite(id.Queue, c.counts.get(id.Queue).Counts, "")
		if _, err := c.Route(id); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRouteWriteParallel(b *testing.B) {
	c := newRouting(b)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			id := testQueue.Partition(0)
			id.Number, _ = c.pickWrite(id.Queue, c.counts.get(id.Queue).Counts, "")
			if _, err := c.Route(id); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

// BenchmarkRouteRead decides where a poll goes, and counts it.
func BenchmarkRouteRead(b *testing.B) {
	c := newRouting(b)
	b.ReportAllocs()
	for b.Loop() {
		id := testQueue.Partition(0)
		token := c.balancer.PickReadPartition(id.Queue, c.countsOf(id.Queue))
		id.Number = token.Partition
		if _, err := c.Route(id); err != nil {
			b.Fatal(err)
		}
		token.Release()
	}
}

// BenchmarkLookupCounts looks the counts of one queue up, and of 1,000,000 in turn.
func BenchmarkLookupCounts(b *testing.B) {
	for _, n := range []int{1, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			c, queues := filledCache(n)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				if !c.get(queues[i]).Valid() {
					b.Fatal("forgotten")
				}
				if i++; i == n {
					i = 0
				}
			}
		})
	}
}

func BenchmarkLookupCountsParallel(b *testing.B) {
	c, queues := filledCache(1000)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i = (i + 1) % len(queues) {
			if !c.get(queues[i]).Valid() {
				b.Error("forgotten")
				return
			}
		}
	})
}

// filledCache returns a cache that knows n queues.
func filledCache(n int) (*countsCache, []partition.Queue) {
	c, queues := newCountsCache(), make([]partition.Queue, n)
	for i := range queues {
		queues[i] = partition.Queue{Namespace: "default", Name: "queue-" + strconv.Itoa(i), Type: partition.Activity}
		c.put(queues[i], PartitionCounts{Counts: partition.Counts{Read: 4, Write: 4}})
	}
	return c, queues
}
