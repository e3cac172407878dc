package live

import (
	"reflect"
	"sync"
	"sync/atomic"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
)

// maxCached is how many queues a cache remembers; when there are more it begins
// anew, which costs time and nothing else.
const maxCached = 100_000

// made is a value and the snapshot that it was last found right for.
type made[T any] struct {
	value *T
	from  *dynamicconfig.Snapshot
}

// renew returns m for a snapshot: the same value when nothing in it changed.
func (m *made[T]) renew(in *dynamicconfig.Snapshot, build func(*dynamicconfig.Snapshot) T) *made[T] {
	fresh := build(in)
	if m != nil && reflect.DeepEqual(*m.value, fresh) {
		return &made[T]{m.value, in}
	}
	return &made[T]{&fresh, in}
}

// Cached returns a function that gives a struct made of settings, such as the
// settings of one package:
//
//	settings := live.Cached(s, func(in *dynamicconfig.Snapshot) engine.Settings {
//		return engine.Settings{IdleTimeout: idleTimeout.Get(in)}
//	})
//
// It returns the same pointer as long as nothing in the struct changed, so that
// comparing pointers tells whether there is something to do. Do not change what
// it points to. build must not depend on anything but the snapshot.
func Cached[T any](s *Settings, build func(*dynamicconfig.Snapshot) T) func() *T {
	var last atomic.Pointer[made[T]]
	var renewing sync.Mutex
	return func() *T {
		if m := last.Load(); m != nil && m.from == s.Snapshot() {
			return m.value
		}
		renewing.Lock()
		defer renewing.Unlock()
		// Loaded under the lock, so that a slow caller never puts an older
		// snapshot's value over a newer one's.
		in, m := s.Snapshot(), last.Load()
		if m == nil || m.from != in {
			m = m.renew(in, build)
			last.Store(m)
		}
		return m.value
	}
}

// CachedPerQueue is Cached with a struct for each task queue. The pointer of a
// queue may also change when very many queues are asked for.
func CachedPerQueue[T any](s *Settings, build func(*dynamicconfig.Snapshot, partition.Queue) T) func(partition.Queue) *T {
	c := &queueCache[T]{settings: s, build: build}
	return c.get
}

type queueCache[T any] struct {
	settings *Settings
	build    func(*dynamicconfig.Snapshot, partition.Queue) T

	mu struct {
		sync.RWMutex
		made map[partition.Queue]*made[T]
	}
}

func (c *queueCache[T]) get(q partition.Queue) *T {
	in := c.settings.Snapshot()
	c.mu.RLock()
	m := c.mu.made[q]
	c.mu.RUnlock()
	if m != nil && m.from == in {
		return m.value
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	in, m = c.settings.Snapshot(), c.mu.made[q] // under the lock: never older than what is there
	if m != nil && m.from == in {
		return m.value
	}
	if c.mu.made == nil || (m == nil && len(c.mu.made) >= maxCached) {
		c.mu.made = map[partition.Queue]*made[T]{}
	}
	m = m.renew(in, func(in *dynamicconfig.Snapshot) T { return c.build(in, q) })
	c.mu.made[q] = m
	return m.value
}
