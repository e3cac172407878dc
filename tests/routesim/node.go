package routesim

import (
	"time"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// node is a matching node.
type node struct {
	*observer

	name   string
	number int
	up     bool
}

// holding is who holds a partition, as the store knows it.
type holding struct {
	by    *node
	epoch int
	from  time.Duration // it serves; before that the partition is loaded or handed over
	given []*node       // earlier holders that handed it over, and so know the present one
}

// reply is what a node answers a call with.
type reply struct {
	ok      bool
	failure retry.Failure
	hint    *node // of NOT_OWNER; nil: none
	epoch   int
	after   time.Duration // the call waits so long at the node
}

// notSent is what a client finds when no node is there.
var notSent = reply{failure: retry.Failure{NotSent: true}}

// serve answers a call for a partition.
func (w *world) serve(n *node, p partition.ID) reply {
	if !n.up {
		return notSent
	}
	h := w.held[p]
	if h != nil && h.by == n {
		return reply{ok: true, after: max(0, h.from-w.now)}
	}
	owner := w.owner(n.observer, p)
	if owner != n {
		return w.notOwner(h, n, owner)
	}
	switch {
	case h == nil:
		h = &holding{}
		w.held[p] = h
		h.take(n, w.now+w.upTo(loading))
	case !h.by.up:
		h.given = nil // nobody knows where it went
		h.take(n, w.now+w.upTo(loading))
	case w.owner(h.by.observer, p) == h.by:
		return reply{failure: retry.Failure{Reason: task.NotOwner}, hint: h.by, epoch: h.epoch}
	default:
		h.given = append(h.given, h.by)
		h.take(n, max(h.from, w.now)+w.upTo(handOver))
	}
	return reply{ok: true, after: h.from - w.now}
}

func (h *holding) take(n *node, from time.Duration) {
	h.by, h.from = n, from
	h.epoch++
}

// notOwner is the answer of a node that neither holds a partition nor owns it.
func (w *world) notOwner(h *holding, n, owner *node) reply {
	out := reply{failure: retry.Failure{Reason: task.NotOwner}, hint: owner}
	if h == nil {
		return out
	}
	for _, earlier := range h.given {
		if earlier == n {
			out.hint, out.epoch = h.by, h.epoch
		}
	}
	return out
}
