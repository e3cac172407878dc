package balance

import (
	"maps"

	"github.com/taskring/taskring/partition"
)

// forcing is where the calls of one namespace are sent.
type forcing struct {
	namespace string
	access    partition.Access
}

// Force sends every balanced call of a namespace that reads, or writes, to one
// partition, whatever the counts say. It is for tests. An add that is forced to
// the root stands for itself.
func (b *Balancer) Force(namespace string, access partition.Access, number int32) {
	b.changeForced(func(m map[forcing]int32) { m[forcing{namespace, access}] = max(number, 0) })
}

// Unforce takes back what Force did.
func (b *Balancer) Unforce(namespace string, access partition.Access) {
	b.changeForced(func(m map[forcing]int32) { delete(m, forcing{namespace, access}) })
}

// changeForced replaces the map as a whole; nil when it is empty, which costs
// picks nothing.
func (b *Balancer) changeForced(change func(map[forcing]int32)) {
	b.forcing.Lock()
	defer b.forcing.Unlock()
	next := map[forcing]int32{}
	if old := b.forcedTo.Load(); old != nil {
		maps.Copy(next, *old)
	}
	change(next)
	if len(next) == 0 {
		b.forcedTo.Store(nil)
		return
	}
	b.forcedTo.Store(&next)
}

// forced returns where calls of a queue's namespace are forced to.
func (b *Balancer) forced(q partition.Queue, access partition.Access) (number int32, ok bool) {
	m := b.forcedTo.Load()
	if m == nil {
		return 0, false
	}
	number, ok = (*m)[forcing{q.Namespace, access}]
	return number, ok
}
