package client

import (
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/taskring/taskring/partition"
)

// countsCache holds the counts that nodes reported, by queue. Entries nobody asks
// for go away: there are two generations, what is found in the old one moves to
// the new one, and once an hour the old one is dropped.
//
//	shard ──> fresh: slots ──> entry{fingerprint, counts}     open addressing, at
//	     └──> old:   slots ──> ...                            most half full
//
// Reading takes no lock: slots and tables are atomic pointers, entries never
// change. Who writes holds the lock of the shard.
//
// A queue is known by a fingerprint of 128 bits, keyed at random, and not by its
// names: that saves most of the memory. Should two queues ever have the same one,
// each is sent by the other's counts, which costs what stale counts always cost:
// the node refuses and tells the right ones.
//
// An entry takes 64 bytes, its slot 16 to 32 (half to a quarter full), and its
// backlog figures a byte a partition when there are any: 96 bytes at most without.
type countsCache struct {
	seeds  [2]maphash.Seed
	shards [countsShards]countsShard
}

// countsShards is how many locks there are; a shard rotates every
// rotation / countsShards in turn.
const countsShards = 64

type countsShard struct {
	fresh, old atomic.Pointer[countsTable]

	mu   sync.Mutex // held by who writes
	used int        // slots of fresh
}

// fingerprint stands for a queue.
type fingerprint struct{ high, low uint64 }

// countsEntry is what is known of a queue; counts that are not valid mean that it
// was forgotten.
type countsEntry struct {
	of     fingerprint
	counts PartitionCounts
}

// countsTable has a power of two of slots, some of them free.
type countsTable struct{ slots []atomic.Pointer[countsEntry] }

const smallestTable = 8

func newCountsCache() *countsCache {
	c := &countsCache{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	for i := range c.shards {
		c.shards[i].fresh.Store(newCountsTable(smallestTable))
		c.shards[i].old.Store(newCountsTable(smallestTable))
	}
	return c
}

func newCountsTable(slots int) *countsTable {
	return &countsTable{make([]atomic.Pointer[countsEntry], slots)}
}

// fingerprint hashes each name; the two numbers and the type can be had back from
// it. Its high half is spread well also over the queues of one namespace.
func (c *countsCache) fingerprint(q partition.Queue) fingerprint {
	name := maphash.String(c.seeds[1], q.Name) + uint64(q.Type)
	return fingerprint{high: maphash.String(c.seeds[0], q.Namespace) ^ name*0x9e3779b97f4a7c15, low: name}
}

func (c *countsCache) shard(f fingerprint) *countsShard { return &c.shards[f.high>>58] }

// find returns the entry of a fingerprint, or nil, and the slot where it stands or
// would stand.
func (t *countsTable) find(f fingerprint) (*countsEntry, *atomic.Pointer[countsEntry]) {
	mask := uint64(len(t.slots) - 1)
	for i := f.high & mask; ; i = (i + 1) & mask {
		slot := &t.slots[i]
		if e := slot.Load(); e == nil || e.of == f {
			return e, slot
		}
	}
}

// get returns the counts of a queue, the zero value when none are known.
func (c *countsCache) get(q partition.Queue) PartitionCounts {
	f := c.fingerprint(q)
	s := c.shard(f)
	if e, _ := s.fresh.Load().find(f); e != nil {
		return e.counts
	}
	e, _ := s.old.Load().find(f)
	if e == nil {
		return PartitionCounts{}
	}
	s.put(e, false)
	return e.counts
}

// put replaces what is known of a queue; counts that are not valid forget it.
func (c *countsCache) put(q partition.Queue, counts PartitionCounts) {
	if !counts.Valid() {
		counts = PartitionCounts{}
	}
	f := c.fingerprint(q)
	c.shard(f).put(&countsEntry{f, counts}, true)
}

// put writes an entry into the fresh generation; without replace only when there
// is none yet.
func (s *countsShard) put(e *countsEntry, replace bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.fresh.Load()
	before, slot := t.find(e.of)
	switch {
	case before != nil && !replace:
	case before != nil:
		slot.Store(e)
	case 2*(s.used+1) > len(t.slots):
		s.growLocked(t)
		_, slot = s.fresh.Load().find(e.of)
		fallthrough
	default:
		slot.Store(e)
		s.used++
	}
}

// growLocked makes room. Readers that are in the smaller table find all that was
// in it.
func (s *countsShard) growLocked(t *countsTable) {
	larger := newCountsTable(2 * len(t.slots))
	for i := range t.slots {
		if e := t.slots[i].Load(); e != nil {
			_, slot := larger.find(e.of)
			slot.Store(e)
		}
	}
	s.fresh.Store(larger)
}

// rotate begins a new generation in one shard, whose number counts modulo the
// shards.
func (c *countsCache) rotate(shard int) {
	s := &c.shards[shard%countsShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.old.Store(s.fresh.Load())
	s.fresh.Store(newCountsTable(smallestTable))
	s.used = 0
}

// len returns the number of entries, those twice that are in both generations.
func (c *countsCache) len() int {
	n := 0
	for i := range c.shards {
		n += c.shards[i].fresh.Load().valid() + c.shards[i].old.Load().valid()
	}
	return n
}

// valid returns the number of entries that are not forgotten.
func (t *countsTable) valid() int {
	n := 0
	for i := range t.slots {
		if e := t.slots[i].Load(); e != nil && e.counts.Valid() {
			n++
		}
	}
	return n
}
