package dynamicconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/taskring/taskring/partition"
)

// fileOf returns a file with n entries for queues of 100 namespaces.
func fileOf(n int) string {
	var b strings.Builder
	b.WriteString("node.debug: true\nmatching.numTaskqueueWritePartitions:\n  - value: 5\n")
	for i := range n {
		fmt.Fprintf(&b, "  - value: %d\n    constraints: {namespace: namespace-%d, taskQueueName: queue-%d, taskType: activity}\n",
			1+i%100, i%100, i)
	}
	return b.String()
}

var sink int

func BenchmarkGet(b *testing.B) {
	b.Run("default", func(b *testing.B) {
		s := load(b, "")
		for b.Loop() {
			sink += rps.Get(s, "namespace-7")
		}
	})
	b.Run("global", func(b *testing.B) {
		s := load(b, fileOf(10_000))
		for b.Loop() {
			if debug.Get(s) {
				sink++
			}
		}
	})
	for _, n := range []int{1, 100, 10_000} {
		s := load(b, fileOf(n))
		hit := queueOf(fmt.Sprintf("namespace-%d", (n-1)%100), fmt.Sprintf("queue-%d", n-1), partition.Activity)
		miss := queueOf(hit.Namespace, "another-queue", partition.Activity)
		b.Run(fmt.Sprintf("queue/entries=%d/hit", n), func(b *testing.B) {
			for b.Loop() {
				sink += writes.Get(s, hit)
			}
		})
		b.Run(fmt.Sprintf("queue/entries=%d/miss", n), func(b *testing.B) {
			for b.Loop() {
				sink += writes.Get(s, miss)
			}
		})
	}
}

func BenchmarkGradualValue(b *testing.B) {
	g := between(b, ten, eleven)
	for b.Loop() {
		sink += g.Value("shop:orders:2", ten)
	}
}

// BenchmarkParse loads a file of 10,000 entries.
func BenchmarkParse(b *testing.B) {
	content := []byte(fileOf(10_000))
	r := registry(b)
	b.SetBytes(int64(len(content)))
	for b.Loop() {
		if _, err := r.Parse(content); err != nil {
			b.Fatal(err)
		}
	}
}
