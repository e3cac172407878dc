package client

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
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

func (e *echo) AddTasks(_ context.Context, in *matchingpb.AddTasksRequest) (*matchingpb.AddTasksResponse, error) {
	out := &matchingpb.AddTasksResponse{}
	for _, b := range in.GetBatches() {
		out.Results = append(out.Results, &matchingpb.AddResult{Ids: make([]uint64, len(b.GetPayloads()))})
	}
	return out, nil
}

// newEcho returns a client and a bare stub of the same server.
func newEcho(b *testing.B) (*Client, matchingpb.MatchingServiceClient) {
	b.Helper()
	w := &world{parts: map[string]*served{}}
	p := &served{server: grpc.NewServer(), listener: newListener()}
	matchingpb.RegisterMatchingServiceServer(p.server, &echo{})
	go func() { _ = p.server.Serve(p.listener) }()
	w.parts["n0"] = p
	c, err := NewClient(Options{Addresses: []string{"n0"}, DialOptions: []grpc.DialOption{grpc.WithContextDialer(w.dial)}})
	if err != nil {
		b.Fatal(err)
	}
	cc, err := grpc.NewClient("passthrough:///n0", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(w.dial))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		c.Stop()
		_ = cc.Close()
		p.server.Stop()
	})
	return c, matchingpb.NewMatchingServiceClient(cc)
}

// BenchmarkPlainAdd is the yardstick of BenchmarkLoneAdd: the bare stub.
func BenchmarkPlainAdd(b *testing.B) {
	_, stub := newEcho(b)
	in := &matchingpb.AddTaskRequest{TaskQueue: wire.EncodePartition(testQueue.Partition(0)), Payload: make([]byte, 256)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := stub.AddTask(b.Context(), in); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoneAdd(b *testing.B) {
	c, _ := newEcho(b)
	in := &matchingpb.AddTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), Payload: make([]byte, 256)}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.AddTask(b.Context(), in); err != nil {
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

func BenchmarkRouteStatic(b *testing.B) {
	ring := make(StaticRing, 0, 100)
	for i := range 100 {
		ring = append(ring, fmt.Sprintf("10.0.0.%d:7233", i))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ring.Route(testQueue.Partition(7)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLookupCounts(b *testing.B) {
	c := newCountsCache()
	c.put(testQueue, PartitionCounts{Counts: partition.Counts{Read: 4, Write: 4}}, now())
	b.ReportAllocs()
	for b.Loop() {
		if !c.get(testQueue).Valid() {
			b.Fatal("forgotten")
		}
	}
}
