package balance

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/taskring/taskring/partition"
)

// MaxIdleQueues is how many queues without outstanding polls are kept at most.
// Their counters are all zero, so throwing them away loses nothing but the
// work of making them again.
const MaxIdleQueues = shards * maxIdlePerShard

const (
	shards          = 256
	maxIdlePerShard = 16
)

// Random returns 64 random bits. rand.Uint64 of math/rand/v2 is one; a test passes
// that of a seeded source. It must be safe for as many goroutines as use the
// Balancer.
type Random func() uint64

// Balancer holds the outstanding polls of a process, by queue and partition.
type Balancer struct {
	random Random
	seed   maphash.Seed
	tasks  [256]int64 // what each backlog code stands for
	shards [shards]shard

	forcedTo atomic.Pointer[map[forcing]int32] // nil: nothing is forced
	forcing  sync.Mutex                        // held by who replaces it
}

// New returns a Balancer that draws from random.
func New(random Random) *Balancer {
	b := &Balancer{random: random, seed: maphash.MakeSeed()}
	for code := range b.tasks {
		b.tasks[code] = partition.BacklogCode(code).Tasks()
	}
	for i := range b.shards {
		b.shards[i].queues.Store(&map[partition.Queue]*counters{})
	}
	return b
}

// shard is a part of the queues. Readers take the map as it is; a writer
// replaces it, under the lock.
type shard struct {
	queues atomic.Pointer[map[partition.Queue]*counters]
	mu     sync.Mutex
}

// counters are the outstanding polls of one queue.
type counters struct {
	open atomic.Pointer[[]*atomic.Int64] // one per partition; grows only
	gone atomic.Bool                     // thrown away, or about to be
}

// discard reports whether the counters were all zero and may be thrown away. A
// pick that comes meanwhile sees gone and looks the queue up again.
func (q *counters) discard() bool {
	q.gone.Store(true)
	if q.sum() == 0 {
		return true
	}
	q.gone.Store(false)
	return false
}

func (q *counters) sum() int64 {
	open := q.open.Load()
	if open == nil {
		return 0
	}
	var n int64
	for _, counter := range *open {
		n += counter.Load()
	}
	return n
}

// Outstanding returns the polls of a queue that are out, over all partitions.
func (b *Balancer) Outstanding(q partition.Queue) int64 {
	s := &b.shards[maphash.Comparable(b.seed, q)%shards]
	if c, ok := (*s.queues.Load())[q]; ok {
		return c.sum()
	}
	return 0
}

// OutstandingAll returns the polls of all queues that are out, for metrics. It
// looks at every counter.
func (b *Balancer) OutstandingAll() int64 {
	var n int64
	for i := range b.shards {
		for _, c := range *b.shards[i].queues.Load() {
			n += c.sum()
		}
	}
	return n
}

// Queues returns the number of queues that are kept, for metrics.
func (b *Balancer) Queues() int {
	n := 0
	for i := range b.shards {
		n += len(*b.shards[i].queues.Load())
	}
	return n
}

// below returns a number in [0, n), uniform but for one part in 2^64 / n.
func (b *Balancer) below(n uint64) uint64 {
	high, _ := bits.Mul64(b.random(), n)
	return high
}

// queue returns the counters of q, made when missing.
func (b *Balancer) queue(q partition.Queue) *counters {
	s := &b.shards[maphash.Comparable(b.seed, q)%shards]
	if c, ok := (*s.queues.Load())[q]; ok {
		return c
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old := *s.queues.Load()
	if c, ok := old[q]; ok {
		return c
	}
	// A copy for each new queue is quadratic in the number of queues, but that
	// is bounded, and polls of a new queue are rare beside those of old ones.
	next := make(map[partition.Queue]*counters, len(old)+1)
	full := len(old) >= maxIdlePerShard
	for name, c := range old {
		if !full || !c.discard() {
			next[name] = c
		}
	}
	c := &counters{}
	next[q] = c
	s.queues.Store(&next)
	return c
}
