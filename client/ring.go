package client

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
	"github.com/taskring/taskring/ring/route"
)

// Ring is where a client's view of the nodes comes from: a fixed list
// ([StaticRing]), or whatever watches the members of a cluster. Nodes and
// clients that see the same members with the same ring format and batch size
// place a partition on the same node.
type Ring interface {
	// View returns the ring in force, nil before the first complete view has
	// come. It is asked for every call, by many goroutines, and must not block.
	View() *ring.Ring
	// Complete returns a channel that is closed once View returns a ring. Until
	// then calls wait, rather than all go to the first node heard of.
	Complete() <-chan struct{}
}

// ErrNoNodes is the cause of the error of a call when the ring is empty.
var ErrNoNodes = errors.New("no node is known: give the client the address of at least one")

// ErrNoView is the cause of the error of a call when no complete view of the
// nodes came in time.
var ErrNoView = errors.New("the members of the cluster are not known yet")

// StaticRing returns a Ring of nodes that never change, complete at once. It
// takes milliseconds for a few nodes, a second for hundreds.
func StaticRing(nodes ...ring.Node) (Ring, error) {
	r, err := ring.New(ring.DefaultFormat(), nodes)
	if err != nil {
		return nil, fmt.Errorf("static ring: %w", err)
	}
	complete := make(chan struct{})
	close(complete)
	return &staticRing{r, complete}, nil
}

type staticRing struct {
	ring     *ring.Ring
	complete chan struct{}
}

func (s *staticRing) View() *ring.Ring { return s.ring }

func (s *staticRing) Complete() <-chan struct{} { return s.complete }

// Route returns the gRPC address of the node that owns a partition. It does not
// wait for a view: without one the error matches [ErrNoView], without a node
// [ErrNoNodes].
func (c *Client) Route(id partition.ID) (address string, err error) {
	view := c.ring.View()
	if view == nil {
		return "", fmt.Errorf("routing %v: %w", id, ErrNoView)
	}
	owner, ok := route.Owner(view, id, c.sources.batchSize(id))
	if !ok {
		return "", fmt.Errorf("routing %v: %w", id, ErrNoNodes)
	}
	return owner.Address, nil
}

// where is Route for a call, which waits for the first view.
func (c *Client) where(ctx context.Context, id partition.ID) (string, error) {
	if c.ring.View() == nil {
		if err := waitFor(ctx, c.ring.Complete()); err != nil {
			return "", task.Errorf(task.NotReady, "routing %v: %w", id, ErrNoView)
		}
	}
	address, err := c.Route(id)
	if err != nil {
		return "", task.Errorf(task.NotReady, "%w", err)
	}
	return address, nil
}

// addresses returns those of all nodes on the ring.
func (c *Client) addresses() []string {
	nodes := c.ring.View().Nodes()
	out := make([]string, len(nodes))
	for i, n := range nodes {
		out[i] = n.Address
	}
	return out
}

// isMember reports whether a node on the ring has the address.
func (c *Client) isMember(address string) bool { return slices.Contains(c.addresses(), address) }
