//go:build !race

package live_test

import (
	"testing"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/partition"
)

func TestReadingAllocatesNothing(t *testing.T) {
	s := live.New(snapshot(t, limit.With(7, ofOrders)))
	perQueue := live.CachedPerQueue(s, func(in *dynamicconfig.Snapshot, q partition.Queue) int { return limit.Get(in, q) })
	global := live.Cached(s, func(in *dynamicconfig.Snapshot) bool { return verbose.Get(in) })
	for name, read := range map[string]func(){
		"snapshot":  func() { limit.Get(s.Snapshot(), orders) },
		"per queue": func() { perQueue(orders) },
		"global":    func() { global() },
	} {
		read() // builds what is cached
		if n := testing.AllocsPerRun(100, read); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}
