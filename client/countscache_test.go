package client

import (
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/partition"
)

// rotateAll begins a new generation everywhere.
func rotateAll(c *countsCache) {
	for shard := range countsShards {
		c.rotate(shard)
	}
}

// dumbCache is the cache as two maps.
type dumbCache struct {
	fresh, old map[partition.Queue]PartitionCounts
}

func (d *dumbCache) get(q partition.Queue) PartitionCounts {
	if c, ok := d.fresh[q]; ok {
		return c
	}
	c, ok := d.old[q]
	if ok {
		d.fresh[q] = c
	}
	return c
}

// TestCacheIsTwoGenerations holds the cache to two maps.
func TestCacheIsTwoGenerations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, dumb := newCountsCache(), &dumbCache{map[partition.Queue]PartitionCounts{}, map[partition.Queue]PartitionCounts{}}
		queue := rapid.Custom(func(t *rapid.T) partition.Queue {
			name := rapid.SampledFrom([]string{"a", "b", "ab", "c", "long-queue-name"})
			return partition.Queue{Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "name"), Type: partition.TaskType(rapid.IntRange(1, 3).Draw(t, "type"))}
		})
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				q, n := queue.Draw(t, "queue"), rapid.Int32Range(0, 9).Draw(t, "n")
				c.put(q, counts(n, n))
				dumb.fresh[q] = counts(n, n)
			},
			"rotate": func(*rapid.T) {
				rotateAll(c)
				dumb.old, dumb.fresh = dumb.fresh, map[partition.Queue]PartitionCounts{}
			},
			"": func(t *rapid.T) {
				q := queue.Draw(t, "queue")
				if got, want := c.get(q), dumb.get(q); got != want {
					t.Fatalf("%v: %+v, want %+v", q, got, want)
				}
			},
		})
	})
}

func TestCacheForgetsTheUnused(t *testing.T) {
	c, queues := filledCache(10_000)
	if n := c.len(); n != 10_000 {
		t.Fatalf("%d entries, want 10,000", n)
	}
	rotateAll(c)
	for _, q := range queues[:100] {
		if !c.get(q).Valid() {
			t.Fatalf("%v was forgotten after one rotation", q)
		}
	}
	rotateAll(c)
	if n := c.len(); n != 100 {
		t.Errorf("%d entries after two rotations, want the 100 that were used", n)
	}
	if c.get(queues[200]).Valid() {
		t.Error("an unused entry is still there")
	}
}

// TestCacheMemory states the bytes of an entry.
func TestCacheMemory(t *testing.T) {
	n := 200_000
	if os.Getenv("TASKRING_LONG") != "" {
		n = 1_000_000
	}
	queues := make([]partition.Queue, n)
	for i := range queues {
		queues[i] = partition.Queue{Namespace: "default", Name: "queue-" + strconv.Itoa(i), Type: partition.Activity}
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := newCountsCache()
	for _, q := range queues {
		c.put(q, counts(4, 4))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / float64(n)
	t.Logf("%d queues take %.1f bytes each", n, each)
	if each > 100 {
		t.Errorf("a queue takes %.1f bytes, want 100 at most", each)
	}
	for i, q := range queues {
		if !c.get(q).Valid() {
			t.Fatalf("queue %d of %d is not there", i, n)
		}
	}
	runtime.KeepAlive(queues)
}

func TestCacheConcurrently(t *testing.T) {
	c := newCountsCache()
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range 20_000 {
				n := random.Int32N(500)
				q := partition.Queue{Namespace: "ns", Name: strconv.Itoa(int(n)), Type: partition.Activity}
				if got := c.get(q); got.Valid() && got.Write != n+1 {
					t.Errorf("queue %d has the counts of queue %d", n, got.Write-1)
					return
				}
				c.put(q, counts(n+1, n+1))
				if i%1000 == 0 {
					c.rotate(int(n))
				}
			}
		})
	}
	wg.Wait()
}
