package cluster

import (
	"context"
	"strconv"
	"testing"

	"github.com/taskring/taskring/client"
)

// BenchmarkFlow is one task from its add to its completion, on a node with a
// durable store, with as many producers at a time.
func BenchmarkFlow(b *testing.B) {
	for _, callers := range []int{16, 1024} {
		b.Run(strconv.Itoa(callers), func(b *testing.B) {
			node := startNode(b, 1)
			adds := newClient(b, client.Options{Addresses: []string{node.GRPCAddr()}})
			polls := newClient(b, client.Options{Addresses: []string{node.GRPCAddr()}})
			got := newReceipts(b.N)
			stop := work(b, polls, callers, func(_ context.Context, x *client.Task) error {
				got.note(x.Payload)
				return nil
			})
			b.ReportAllocs()
			b.ResetTimer()
			produce(b, adds, b.N, callers)
			got.await(b)
			b.StopTimer()
			b.ReportMetric(float64(adds.Stats().Calls+polls.Stats().Calls)/float64(b.N), "calls/op")
			stop()
		})
	}
}
