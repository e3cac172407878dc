package ring

import (
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Key is a key that was hashed for the ring.
type Key uint64

// KeyOf hashes a key.
func KeyOf(key string) Key { return Key(xxhash.Sum64String(key)) }

// KeyOfBytes hashes a key that stands in a buffer. It equals [KeyOf] of the same
// bytes, and does not keep them.
func KeyOfBytes(key []byte) Key { return Key(xxhash.Sum64(key)) }

// Ring gives each key a list of all nodes; the first one owns it. It is immutable:
// any number of goroutines may use it, without a lock. A nil Ring is empty.
type Ring struct {
	format      Format
	nodes       []Node // sorted by name
	table       *table // nil when there are no nodes
	fingerprint uint64
}

// New builds a ring of the nodes whose weight is not 0. Their order does not
// matter, nor do duplicates. It takes time (a second at 200 nodes, growing with
// the square), so it is called where members change, by a [Builder]. The error
// says what is wrong with the format or the nodes.
func New(f Format, nodes []Node) (*Ring, error) {
	b, err := NewBuilder(f)
	if err != nil {
		return nil, err
	}
	r, err := b.Build(nodes)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Lookup returns the owner of a key; ok is false when the ring is empty.
func (r *Ring) Lookup(k Key) (owner Node, ok bool) { return r.At(k, 0) }

// At returns node i of the list of a key. Behind the last node the list begins
// anew: i counts modulo [Ring.Len]. ok is false when the ring is empty or i is
// negative. It takes some nanoseconds for i below [Positions], and beyond looks at
// every node once for each further position.
func (r *Ring) At(k Key, i int) (n Node, ok bool) {
	if r == nil || len(r.nodes) == 0 || i < 0 {
		return Node{}, false
	}
	if i >= len(r.nodes) {
		i %= len(r.nodes)
	}
	return r.nodes[r.table.at(uint64(k)%r.table.slots, i)], true
}

// LookupN appends the first n nodes of the list of a key to dst, all nodes when
// there are fewer, and none when n is not positive. They are distinct, the owner
// comes first, and a longer list begins with the shorter one. It allocates only
// when dst has no room.
func (r *Ring) LookupN(dst []Node, k Key, n int) []Node {
	if r == nil || len(r.nodes) == 0 || n <= 0 {
		return dst
	}
	n = min(n, len(r.nodes))
	slot := uint64(k) % r.table.slots
	for _, i := range r.table.row(slot)[:min(n, r.table.depth)] {
		dst = append(dst, r.nodes[i])
	}
	rest := r.table.rest(slot)
	for range n - min(n, r.table.depth) {
		dst = append(dst, r.nodes[rest.next()])
	}
	return dst
}

// Slot returns the slot of a key; all keys of a slot have the same list. It is 0
// when the ring is empty.
func (r *Ring) Slot(k Key) int {
	if r == nil || r.table == nil {
		return 0
	}
	return int(uint64(k) % r.table.slots)
}

// Len returns the number of nodes on the ring.
func (r *Ring) Len() int {
	if r == nil {
		return 0
	}
	return len(r.nodes)
}

// Nodes returns the nodes on the ring by name, in a slice of the caller's own.
func (r *Ring) Nodes() []Node {
	if r == nil {
		return nil
	}
	return slices.Clone(r.nodes)
}

// Owned returns how many slots each of [Ring.Nodes] owns.
func (r *Ring) Owned() []int {
	owned := make([]int, r.Len())
	if len(owned) > 0 {
		for slot := range r.table.slots {
			owned[r.table.row(slot)[0]]++
		}
	}
	return owned
}

// fewestSlots is how many slots a point needs for shares to be even and moves to
// be small.
const fewestSlots = 20

// Crowded reports whether there are fewer than 20 slots a point: shares become
// uneven and more keys move than need to when members change. A node warns of it.
func (r *Ring) Crowded() bool {
	return r.Len() > 0 && r.format.Slots < fewestSlots*len(r.table.points)
}

// Format returns the format that the ring was built with.
func (r *Ring) Format() Format {
	if r == nil {
		return Format{}
	}
	return r.format
}

// Fingerprint identifies the view of the members that the ring was built from:
// names and weights, not addresses. It is never 0, which stands for "not known".
func (r *Ring) Fingerprint() uint64 {
	if r == nil || r.fingerprint == 0 {
		return fingerprintOf(nil)
	}
	return r.fingerprint
}

// fingerprintOf hashes names and weights, each with its length in front.
func fingerprintOf(nodes []Node) uint64 {
	var b []byte
	for _, n := range nodes {
		b = binary.AppendUvarint(b, uint64(len(n.Name)))
		b = append(b, n.Name...)
		b = binary.AppendUvarint(b, uint64(n.Weight))
	}
	return max(xxhash.Sum64(b), 1)
}
