//go:build !race

package route

import (
	"strings"
	"testing"

	"github.com/taskring/taskring/partition"
)

func TestRouteDoesNotAllocate(t *testing.T) {
	r := mustRing(t, nodes(100))
	short := partition.Queue{Namespace: "default", Name: "order-processing", Type: partition.Activity}
	longest := strings.Repeat("x", partition.MaxNameLength)
	long := partition.Queue{Namespace: longest, Name: longest, Type: partition.Activity}
	for _, q := range []partition.Queue{short, long} {
		for _, batch := range []int32{0, 8, 32} {
			p := q.Partition(127)
			if n := testing.AllocsPerRun(100, func() { Owner(r, p, batch) }); n != 0 {
				t.Errorf("%.20s, batch size %d: %v allocations", q, batch, n)
			}
		}
	}
}
