//go:build !race

package dynamicconfig

import (
	"testing"

	"github.com/taskring/taskring/partition"
)

func TestReadingAllocatesNothing(t *testing.T) {
	s := load(t, fileOf(1000)+`
matching.spreadRoutingBatchSize: {old: 0, new: 8, start: 2026-12-01T10:00:00Z, end: 2026-12-01T11:00:00Z}
matching.counter: {width: 7}
`)
	q := queueOf("namespace-7", "queue-7", partition.Activity)
	for name, read := range map[string]func(){
		"default":   func() { wait.Get(s, q) },
		"global":    func() { debug.Get(s) },
		"namespace": func() { rps.Get(s, q.Namespace) },
		"queue":     func() { writes.Get(s, q) },
		"struct":    func() { counter.Get(s, q) },
		"list":      func() { tags.Get(s, q) },
		"gradual":   func() { spread.Get(s).Value("shop:orders:2", ten) },
	} {
		if n := testing.AllocsPerRun(100, read); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
