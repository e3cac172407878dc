package ring

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// separator stands between the name of a node and the number of one of its
// further points.
const separator = "#"

// Node is a member that may own keys. Name and Weight decide where it stands on
// the ring; all else is carried along.
type Node struct {
	// Name stays the same when the node starts again. Not empty, without "#".
	Name string
	// Weight is how many points the node has, hence its share of the keys. A
	// node of weight 0 (draining) is not on the ring.
	Weight int
	// Address is where it is called, HOST:PORT.
	Address string
	// RunID is new each time that the node starts.
	RunID string
}

// Named returns nodes of weight 1 whose names are their addresses: the members
// of a fixed list.
func Named(addresses ...string) []Node {
	nodes := make([]Node, len(addresses))
	for i, a := range addresses {
		nodes[i] = Node{Name: a, Weight: 1, Address: a}
	}
	return nodes
}

// ValidateName reports why s cannot be the name of a node. Whoever starts a node
// checks it then: a ring with such a member is refused by everybody.
func ValidateName(s string) error {
	switch {
	case s == "":
		return errors.New("the name of a node is empty")
	case strings.Contains(s, separator):
		return fmt.Errorf("the name of node %q holds %q, which sets apart the points of a node with a weight", s, separator)
	}
	return nil
}

// normal returns the nodes that stand on the ring, sorted by name, each once: a
// function of the set of nodes, whatever their order. Of two entries of one name
// the greater weight counts, then the greater run id and address.
func normal(nodes []Node, maxPoints int) ([]Node, error) {
	var errs []error
	sorted := slices.Clone(nodes)
	slices.SortFunc(sorted, func(a, b Node) int {
		return cmp.Or(
			cmp.Compare(a.Name, b.Name),
			cmp.Compare(b.Weight, a.Weight),
			cmp.Compare(b.RunID, a.RunID),
			cmp.Compare(b.Address, a.Address),
		)
	})
	sorted = slices.CompactFunc(sorted, func(a, b Node) bool { return a.Name == b.Name })
	points := 0
	for _, n := range sorted {
		if err := ValidateName(n.Name); err != nil {
			errs = append(errs, err)
		}
		if n.Weight < 0 || n.Weight > maxPoints {
			errs = append(errs, fmt.Errorf("node %q has weight %d, it has to be 0 to %d (max points)", n.Name, n.Weight, maxPoints))
			continue
		}
		points += n.Weight
	}
	if points > maxPoints {
		errs = append(errs, fmt.Errorf("the weights of all nodes add up to %d, the limit is %d (max points)", points, maxPoints))
	}
	sorted = slices.DeleteFunc(sorted, func(n Node) bool { return n.Weight == 0 })
	return slices.Clip(sorted), errors.Join(errs...)
}

// samePlaces reports whether two normal lists give the same table.
func samePlaces(a, b []Node) bool {
	return slices.EqualFunc(a, b, func(x, y Node) bool { return x.Name == y.Name && x.Weight == y.Weight })
}
