package route

import (
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
)

// TestBatchSizesChange holds At to the gradual change itself: each partition
// flips once, at its own instant.
func TestBatchSizesChange(t *testing.T) {
	start := time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	change, err := dynamicconfig.ChangeBetween(0, 8, start, start.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	sizes := SpreadGradually(change)
	if !sizes.Changes() {
		t.Error("a change does not change")
	}
	instants := map[time.Time]bool{}
	for _, name := range []string{"orders", strings.Repeat("q", partition.MaxNameLength)} {
		q := partition.Queue{Namespace: "ns", Name: name, Type: partition.Activity}
		for n := range int32(100) {
			p := q.Partition(n)
			flip, ok := change.When(p.GradualKey())
			if !ok {
				t.Fatal("no instant")
			}
			instants[flip] = true
			if before, after := sizes.At(p, flip.Add(-1)), sizes.At(p, flip); before != 0 || after != 8 {
				t.Errorf("%.20s #%d: %d before its flip, %d at it, want 0 and 8", name, n, before, after)
			}
			if before, after := sizes.At(p, start.Add(-1)), sizes.At(p, start.Add(time.Hour)); before != 0 || after != 8 {
				t.Errorf("%.20s #%d: %d before the start, %d at the end, want 0 and 8", name, n, before, after)
			}
		}
	}
	if len(instants) < 190 {
		t.Errorf("200 partitions flip at %d instants", len(instants))
	}
}

func TestBatchSizesFromSettings(t *testing.T) {
	q := partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}
	registry, err := dynamicconfig.NewRegistry(Declared()...)
	if err != nil {
		t.Fatal(err)
	}
	in, err := registry.Parse([]byte("matching.spreadRoutingBatchSize:\n  - value: 8\n    constraints: {namespace: ns}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for want, sizes := range map[int32]BatchSizes{8: BatchSizesIn(in, q), 4: SpreadBy(4), 0: BatchSizesIn(nil, q), -1: SpreadBy(-1)} {
		if got := sizes.At(q.Partition(3), time.Time{}); got != want || sizes.Changes() {
			t.Errorf("batch size %d, want %d, unchanging", got, want)
		}
	}
	if got := (&BatchSizes{}).At(q.Partition(3), time.Time{}); got != 0 {
		t.Errorf("the zero value spreads by %d", got)
	}
}
