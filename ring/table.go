package ring

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
)

// table holds, for each slot, the first nodes of its list. It knows nodes as
// numbers: their places among the sorted names.
type table struct {
	slots  uint64
	depth  int      // nodes a row, min(nodes, Positions)
	rows   []uint16 // slots rows, one after the other
	points []point  // sorted by node
	hashes []uint64 // of the points, close together
}

// point is one of the virtual names of a node; a node has as many as its weight.
type point struct {
	name string
	hash uint64
	node uint16
}

// String makes a point a member of the library's ring.
func (p point) String() string { return p.name }

// pointsOf returns the points of nodes, which are normal. The first one bears the
// bare name of the node, so that a change of its weight from 1 to 2 adds a point
// and leaves the others alone.
func pointsOf(nodes []Node) []point {
	var points []point
	for i, n := range nodes {
		for j := range n.Weight {
			name := n.Name
			if j > 0 {
				name += separator + strconv.Itoa(j)
			}
			points = append(points, point{name: name, hash: xxhash.Sum64String(name), node: uint16(i)})
		}
	}
	return points
}

// locator builds the library's ring; tests put in one that panics.
type locator func([]consistent.Member, consistent.Config) *consistent.Consistent

// hasher is xxhash64 in the shape that the library wants.
type hasher struct{}

// Sum64 returns the hash of b.
func (hasher) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// errPanic is matched by the error for a panic of the library.
var errPanic = errors.New("the ring library panicked")

// newTable builds the table of at least one node. A panic of the library comes
// back as an error.
func newTable(f Format, nodes []Node, locate locator) (t *table, err error) {
	defer func() {
		if r := recover(); r != nil {
			t, err = nil, fmt.Errorf("%w with %d nodes: %v", errPanic, len(nodes), r)
		}
	}()
	t = &table{slots: uint64(f.Slots), depth: min(len(nodes), Positions), points: pointsOf(nodes)}
	for _, p := range t.points {
		t.hashes = append(t.hashes, p.hash)
	}
	t.rows = make([]uint16, f.Slots*t.depth)
	members := make([]consistent.Member, len(t.points))
	for i, p := range t.points {
		members[i] = p
	}
	owners := locate(members, consistent.Config{
		Hasher: hasher{}, PartitionCount: f.Slots, ReplicationFactor: f.Replication, Load: f.Load,
	})
	taken := make([]bool, len(nodes))
	for slot := range t.slots {
		owner, ok := owners.GetPartitionOwner(int(slot)).(point)
		if !ok {
			return nil, fmt.Errorf("the ring library gave slot %d to nobody", slot)
		}
		t.draw(slot, owner.node, taken)
	}
	return t, nil
}

// draw fills the row of a slot behind its owner: at each position the node, of
// those not yet in the row, with the highest score there. taken is all false,
// before and after.
func (t *table) draw(slot uint64, owner uint16, taken []bool) {
	row := t.row(slot)
	row[0], taken[owner] = owner, true
	for i := 1; i < len(row); i++ {
		key := t.positionKey(slot, i)
		best, highest, found := uint16(0), uint64(0), false
		for j, hash := range t.hashes {
			s := mix64(hash ^ key)
			if s < highest {
				continue // most of them
			}
			// Points stand in the order of names: of equal scores the first wins.
			if node := t.points[j].node; !taken[node] && (s > highest || !found) {
				best, highest, found = node, s, true
			}
		}
		row[i], taken[best] = best, true
	}
	for _, n := range row {
		taken[n] = false
	}
}

// row returns the first nodes of the list of a slot.
func (t *table) row(slot uint64) []uint16 {
	start := int(slot) * t.depth
	return t.rows[start : start+t.depth : start+t.depth]
}

// positionKey is what the hash of a point is mixed with at a position of a list.
// All positions behind the drawn ones share the key of the first of them.
func (t *table) positionKey(slot uint64, i int) uint64 {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], slot)
	return mix64(xxhash.Sum64(b[:]) + uint64(min(i, Positions))*salt)
}

// at returns node i of the list of a slot, i being less than the number of nodes.
func (t *table) at(slot uint64, i int) uint16 {
	if i < t.depth {
		return t.rows[int(slot)*t.depth+i]
	}
	r := t.rest(slot)
	for range i - t.depth {
		r.next()
	}
	return r.next()
}

// rest walks the part of a list that the table does not hold, without allocating.
// Each step looks at all points.
type rest struct {
	table *table
	row   []uint16
	key   uint64
	last  uint16 // the node of the last step, and its score
	score uint64
	began bool
}

func (t *table) rest(slot uint64) rest {
	return rest{table: t, row: t.row(slot), key: t.positionKey(slot, Positions)}
}

// next returns the node that comes next in rendezvous order: by falling score,
// then by name.
func (r *rest) next() uint16 {
	best, highest, found := uint16(0), uint64(0), false
	points := r.table.points
	for i := 0; i < len(points); {
		node, s := points[i].node, uint64(0)
		for ; i < len(points) && points[i].node == node; i++ {
			s = max(s, mix64(points[i].hash^r.key))
		}
		if (!found || s > highest) && r.isBehind(node, s) && !slices.Contains(r.row, node) {
			best, highest, found = node, s, true
		}
	}
	r.last, r.score, r.began = best, highest, true
	return best
}

// isBehind reports whether a node with score s comes behind the last step's.
func (r *rest) isBehind(node uint16, s uint64) bool {
	return !r.began || s < r.score || (s == r.score && node > r.last)
}

// mix64 is a bijection in which each bit of x changes about half of the result.
func mix64(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
