package matching

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/partition"
)

// BenchmarkSettings is what a call costs that reads its settings: those of the
// server, the counts of its queue, and those of a loaded partition.
func BenchmarkSettings(b *testing.B) {
	r, err := dynamicconfig.NewRegistry(Declared()...)
	if err != nil {
		b.Fatal(err)
	}
	for _, entries := range []int{0, 1000} {
		var text strings.Builder
		if entries > 0 {
			text.WriteString("matching.numTaskqueueWritePartitions:\n")
		}
		for i := range entries {
			fmt.Fprintf(&text, "  - {value: 4, constraints: {namespace: shop, taskQueueName: q%d}}\n", i)
		}
		in, err := r.Parse([]byte(text.String()))
		if err != nil {
			b.Fatal(err)
		}
		n := &Node{settings: live.New(in)}
		q := partition.Queue{Namespace: "shop", Name: "q7", Type: partition.Activity}
		server, queue := n.serverSettings(), n.queueSettings(q)
		b.Run(fmt.Sprintf("server/%d entries", entries), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = server()
			}
		})
		b.Run(fmt.Sprintf("counts/%d entries", entries), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = n.enginePerQueue(q)
			}
		})
		b.Run(fmt.Sprintf("partition/%d entries", entries), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_ = queue()
			}
		})
	}
}
