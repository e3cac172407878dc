package route

import (
	"fmt"
	"testing"

	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
)

// nodes returns n nodes with names as a deployment would give them.
func nodes(n int) []ring.Node {
	all := make([]ring.Node, n)
	for i := range all {
		all[i] = ring.Node{Name: fmt.Sprintf("matching-%03d", i), Weight: 1, Address: fmt.Sprintf("10.0.0.%d:7233", i)}
	}
	return all
}

func mustRing(tb testing.TB, members []ring.Node) *ring.Ring {
	tb.Helper()
	r, err := ring.New(ring.DefaultFormat(), members)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// BenchmarkRoute finds the owners of the 128 partitions of a queue on 100 nodes.
func BenchmarkRoute(b *testing.B) {
	r := mustRing(b, nodes(100))
	q := partition.Queue{Namespace: "default", Name: "order-processing", Type: partition.Activity}
	for _, batch := range []int32{0, 4, 8} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			b.ReportAllocs()
			n := int32(0)
			for b.Loop() {
				if _, ok := Owner(r, q.Partition(n), batch); !ok {
					b.Fatal("no owner")
				}
				n = (n + 1) % 128
			}
		})
	}
}

// BenchmarkRouteParallel is the same from all processors at once: nothing is
// shared but what is only read.
func BenchmarkRouteParallel(b *testing.B) {
	r := mustRing(b, nodes(100))
	q := partition.Queue{Namespace: "default", Name: "order-processing", Type: partition.Activity}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for n := int32(0); pb.Next(); n = (n + 1) % 128 {
			if _, ok := Owner(r, q.Partition(n), 8); !ok {
				b.Error("no owner")
				return
			}
		}
	})
}

// BenchmarkRouteLongNames has names of 500 bytes each.
func BenchmarkRouteLongNames(b *testing.B) {
	r := mustRing(b, nodes(100))
	q := partition.Queue{Namespace: fmt.Sprintf("%0500d", 1), Name: fmt.Sprintf("%0500d", 2), Type: partition.Activity}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := Owner(r, q.Partition(25), 8); !ok {
			b.Fatal("no owner")
		}
	}
}
