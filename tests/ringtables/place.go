package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"

	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// placer gives a partition to a node, by name.
type placer func(p partition.ID, batch int32) string

// nodes returns n nodes as a deployment would name them.
func nodes(n int) []ring.Node {
	all := make([]ring.Node, n)
	for i := range all {
		all[i] = ring.Node{Name: fmt.Sprintf("node-%d", i), Weight: 1}
	}
	return all
}

// ours places by the table of package ring.
func ours(members []ring.Node) (placer, error) {
	r, err := ring.New(ring.DefaultFormat(), members)
	if err != nil {
		return nil, err
	}
	return func(p partition.ID, batch int32) string {
		n, _ := route.Owner(r, p, batch)
		return n.Name
	}, nil
}

// member is a node in the library's ring, hasher the hash that both rings use.
type (
	member string
	hasher struct{}
)

// String returns the node's name.
func (m member) String() string { return string(m) }

// Sum64 returns the hash of b.
func (hasher) Sum64(b []byte) uint64 { return xxhash.Sum64(b) }

// library makes the library's ring, with the same format as ours.
func library(members []ring.Node) *consistent.Consistent {
	all := make([]consistent.Member, len(members))
	for i, n := range members {
		all[i] = member(n.Name)
	}
	f := ring.DefaultFormat()
	return consistent.New(all, consistent.Config{
		Hasher: hasher{}, PartitionCount: f.Slots, ReplicationFactor: f.Replication, Load: f.Load,
	})
}

// plain places by the library alone: position index of GetClosestN, wrapped at the
// number of nodes.
func plain(members []ring.Node) placer {
	ring := library(members)
	// A list depends on nothing but the slot, and is dear: each is asked for once.
	lists := map[int][]consistent.Member{}
	return func(p partition.ID, batch int32) string {
		key, index := p.AppendSpreadKey(nil, batch)
		slot := ring.FindPartitionID(key)
		list, known := lists[slot]
		if !known {
			// It cannot fail: it asks for no more nodes than there are.
			list, _ = ring.GetClosestN(key, min(len(members), int(slices.Max(batches))))
			lists[slot] = list
		}
		return list[int(index)%len(list)].String()
	}
}

// places returns the owners of partitions 0 to n-1 of many queues.
func places(at placer, queues int, n, batch int32) []string {
	owners := make([]string, 0, queues*int(n))
	for i := range queues {
		q := partition.Queue{Namespace: "default", Name: fmt.Sprintf("queue-%d", i), Type: partition.Activity}
		for p := range n {
			owners = append(owners, at(q.Partition(p), batch))
		}
	}
	return owners
}

// movement writes how many of 1,000 queues with 8 partitions each move when one of
// the nodes leaves, in per cent: the mean over three nodes.
func movement(sizes []int) (string, error) {
	var b strings.Builder
	b.WriteString("| nodes | have to move | batch 0 | batch 4 | batch 8 | GetClosestN, batch 4 | GetClosestN, batch 8 |\n")
	b.WriteString("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, n := range sizes {
		if n == 1 {
			continue // everything goes
		}
		table, closest := map[int32]float64{}, map[int32]float64{}
		const leavers = 3
		all := nodes(n)
		before, err := ours(all)
		if err != nil {
			return "", err
		}
		plainBefore := plain(all)
		for i := range leavers {
			left := slices.Delete(slices.Clone(all), i, i+1)
			after, err := ours(left)
			if err != nil {
				return "", err
			}
			plainAfter := plain(left)
			for _, batch := range batches {
				table[batch] += moved(before, after, batch) / leavers
				closest[batch] += moved(plainBefore, plainAfter, batch) / leavers
			}
		}
		fmt.Fprintf(&b, "| %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n",
			n, 100/float64(n), table[0], table[4], table[8], closest[4], closest[8])
	}
	return b.String(), nil
}

// moved returns how many partitions two placers place differently, in per cent.
func moved(before, after placer, batch int32) float64 {
	const queues, partitions = 1000, 8
	a, b := places(before, queues, partitions, batch), places(after, queues, partitions, batch)
	n := 0
	for i := range a {
		if a[i] != b[i] {
			n++
		}
	}
	return 100 * float64(n) / float64(len(a))
}

// spread writes how evenly 10,000 queues with 32 partitions each lie on the nodes,
// and how the 32 of a single queue do, on average.
func spread(sizes []int) (string, error) {
	var b strings.Builder
	b.WriteString("| nodes | all queues, batch 0 | batch 4 | batch 8 | GetClosestN, batch 8 | one queue, batch 0 | batch 4 | batch 8 | GetClosestN, batch 8 |\n")
	b.WriteString("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, n := range sizes {
		table, err := ours(nodes(n))
		if err != nil {
			return "", err
		}
		all, one := map[int32]float64{}, map[int32]float64{}
		for _, batch := range batches {
			all[batch], one[batch] = fullest(table, n, batch)
		}
		closestAll, closestOne := fullest(plain(nodes(n)), n, 8)
		fmt.Fprintf(&b, "| %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n",
			n, all[0], all[4], all[8], closestAll, one[0], one[4], one[8], closestOne)
	}
	return b.String(), nil
}

// fullest returns the partitions on the fullest node, divided by what it would have
// if all had equally many: over all queues, and for the partitions of one queue, the
// mean over the queues. Nodes that cannot have a part each count as having one.
func fullest(at placer, nodes int, batch int32) (all, one float64) {
	const queues, partitions = 10_000, 32
	owners := places(at, queues, partitions, batch)
	total := map[string]int{}
	ofOne := map[string]int{}
	most := 0
	for i, o := range owners {
		if i%partitions == 0 {
			clear(ofOne)
			most = 0
		}
		total[o]++
		ofOne[o]++
		most = max(most, ofOne[o])
		if i%partitions == partitions-1 {
			one += float64(most)
		}
	}
	for _, n := range total {
		all = max(all, float64(n))
	}
	even := (partitions + nodes - 1) / nodes
	return all / float64(len(owners)) * float64(nodes), one / queues / float64(even)
}
