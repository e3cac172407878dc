package routesim

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// epochStart is the wall time at which scenarios begin.
var epochStart = time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)

// world is a scenario that is being played.
type world struct {
	Scenario

	rng     *rand.Rand
	now     time.Duration
	agenda  agenda
	sizes   route.BatchSizes
	rings   map[string]*ring.Ring // by members
	nodes   []*node
	clients []*observer
	held    map[partition.ID]*holding
	figures Figures
	err     error // of a ring that cannot be built
}

// observer is a process with its view of the members.
type observer struct {
	skew  time.Duration   // of its clock
	heard []time.Duration // when it hears of each change
	ring  *ring.Ring      // of what it heard
	next  time.Duration   // when it hears more; -1 for never
}

func newWorld(s Scenario, seed uint64) (*world, error) {
	w := &world{Scenario: s, rng: rand.New(rand.NewPCG(seed, 0)), rings: map[string]*ring.Ring{}, held: map[partition.ID]*holding{}}
	w.sizes = route.SpreadBy(s.New)
	if s.Old != s.New {
		change, err := dynamicconfig.ChangeBetween(s.Old, s.New, epochStart.Add(s.Start), epochStart.Add(s.End))
		if err != nil {
			return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
		}
		w.sizes = route.SpreadGradually(change)
	}
	last := s.Nodes - 1
	for _, c := range s.Changes {
		last = max(last, slices.Max(append(slices.Clone(c.Joins), last)))
	}
	for i := range last + 1 {
		w.nodes = append(w.nodes, &node{observer: w.newObserver(0), name: nodeName(i), number: i, up: i < s.Nodes})
	}
	for i := range s.Clients {
		late := time.Duration(0)
		if i < s.Late {
			late = s.Lateness
		}
		w.clients = append(w.clients, w.newObserver(late))
	}
	w.schedule()
	return w, w.err
}

func nodeName(i int) string { return "node-" + strconv.Itoa(i) }

// newObserver draws when a process hears of what; the ring is made at first use.
func (w *world) newObserver(late time.Duration) *observer {
	o := &observer{skew: w.upTo(2*w.Skew) - w.Skew}
	for _, c := range w.Changes {
		delay := w.upTo(w.Gossip) + late
		if len(c.Dies) > 0 {
			delay = w.Notice + w.upTo(w.Gossip-w.Notice)
		}
		o.heard = append(o.heard, c.At+delay)
		w.figures.Agree = max(w.figures.Agree, delay)
	}
	return o
}

func (w *world) upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return time.Duration(w.rng.Int64N(int64(d)))
}

// view returns the ring of what a process knows by now.
func (w *world) view(o *observer) *ring.Ring {
	if o.ring != nil && (o.next < 0 || w.now < o.next) {
		return o.ring
	}
	known := w.members()
	o.next = -1
	for i, at := range o.heard {
		switch {
		case at <= w.now:
			w.Changes[i].apply(known)
		case o.next < 0 || at < o.next:
			o.next = at
		}
	}
	o.ring = w.ringOf(known)
	return o.ring
}

// truth returns the ring of the members as they are, and when they changed last; -1
// for never.
func (w *world) truth() (r *ring.Ring, last time.Duration) {
	last = -1
	now := w.members()
	for _, c := range w.Changes {
		if c.At <= w.now {
			c.apply(now)
			last = max(last, c.At)
		}
	}
	return w.ringOf(now), last
}

// members returns who is one at the start.
func (w *world) members() []bool {
	members := make([]bool, len(w.nodes))
	for i := range w.Nodes {
		members[i] = true
	}
	return members
}

func (c Change) apply(members []bool) {
	for _, n := range c.Joins {
		members[n] = true
	}
	for _, n := range append(slices.Clone(c.Leaves), c.Dies...) {
		members[n] = false
	}
}

// ringOf returns the ring of a set of members; each is built once.
func (w *world) ringOf(members []bool) *ring.Ring {
	var names []string
	key := make([]byte, len(members))
	for i, is := range members {
		if is {
			key[i] = 1
			names = append(names, nodeName(i))
		}
	}
	r, known := w.rings[string(key)]
	if !known {
		var err error
		if r, err = ring.New(ring.DefaultFormat(), ring.Named(names...)); err != nil {
			w.err = err
		}
		w.rings[string(key)] = r
	}
	return r
}

// owner returns the node that a process takes for the owner of a partition, by its
// view and its clock; nil when it knows of none.
func (w *world) owner(o *observer, p partition.ID) *node {
	size := w.sizes.At(p, epochStart.Add(w.now+o.skew))
	n, ok := route.Owner(w.view(o), p, size)
	if !ok {
		return nil
	}
	number, err := strconv.Atoi(n.Name[len("node-"):])
	if err != nil {
		w.err = err
		return nil
	}
	return w.nodes[number]
}

// schedule puts the changes and the first call of each client on the agenda.
func (w *world) schedule() {
	for _, c := range w.Changes {
		w.at(c.At, func() {
			for _, n := range c.Joins {
				w.nodes[n].up = true
			}
			for _, n := range c.Dies {
				w.nodes[n].up = false
			}
		})
		w.at(c.At+w.Linger, func() {
			for _, n := range c.Leaves {
				w.nodes[n].up = false
			}
		})
	}
	for _, c := range w.clients {
		w.at(w.upTo(2*w.Every), func() { w.nextCall(c) })
	}
}

// at has something done at a time.
func (w *world) at(t time.Duration, do func()) {
	heap.Push(&w.agenda, item{t, w.agenda.added, do})
	w.agenda.added++
}

// play does all that is on the agenda.
func (w *world) play() {
	for len(w.agenda.items) > 0 && w.err == nil {
		next := heap.Pop(&w.agenda).(item) //nolint:forcetypeassert // only items are pushed
		w.now = next.at
		next.do()
	}
}

// agenda is what is to be done, by time and then in the order of its adding. It is a
// heap.
type agenda struct {
	items []item
	added int
}

type item struct {
	at    time.Duration
	order int
	do    func()
}

// Len implements heap.Interface.
func (a *agenda) Len() int { return len(a.items) }

// Less implements heap.Interface.
func (a *agenda) Less(i, j int) bool {
	x, y := a.items[i], a.items[j]
	return x.at < y.at || (x.at == y.at && x.order < y.order)
}

// Swap implements heap.Interface.
func (a *agenda) Swap(i, j int) { a.items[i], a.items[j] = a.items[j], a.items[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { a.items = append(a.items, x.(item)) } //nolint:forcetypeassert // only items are pushed

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(a.items) - 1
	out := a.items[last]
	a.items[last] = item{}
	a.items = a.items[:last]
	return out
}
