package routesim

import (
	"strconv"
	"time"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// call is one call on its way, as a trip of the routing client is.
type call struct {
	client *observer
	kind   retry.Kind
	id     partition.ID
	picks  bool // the client chose the partition, and may choose another one

	began time.Duration
	tries retry.Tries
	sent  int // times
	at    *node
	hint  *node
	epoch int // of the hint
}

// nextCall begins a call of a client, and plans its next one.
func (w *world) nextCall(c *observer) {
	if w.now >= w.Length {
		return
	}
	q := partition.Queue{Namespace: "default", Name: "queue-" + strconv.Itoa(w.rng.IntN(w.Queues)), Type: partition.Activity}
	one := &call{client: c, began: w.now, id: q.Partition(w.rng.Int32N(int32(w.Partitions)))}
	switch w.rng.IntN(3) {
	case 0:
		one.kind, one.picks = retry.Add, true
	case 1:
		one.kind, one.picks = retry.Repeatable, true // a poll
	default:
		one.kind = retry.Repeatable // a completion: its token names the partition
	}
	w.try(one)
	w.at(w.now+w.upTo(2*w.Every), func() { w.nextCall(c) })
}

// try makes a call once.
func (w *world) try(c *call) {
	c.at = c.hint
	if c.at == nil {
		c.at = w.owner(c.client, c.id)
	}
	c.sent++
	var r reply
	if c.at == nil {
		r = reply{failure: retry.Failure{Reason: task.NotReady}}
	} else {
		r = w.serve(c.at, c.id)
	}
	w.at(w.now+hop+r.after, func() { w.answered(c, r) })
}

func (w *world) answered(c *call, r reply) {
	if r.ok {
		w.figures.done(w, c)
		return
	}
	d := retry.Decide(c.kind, r.failure, &c.tries, w.rng.Float64)
	if r.failure.NotSent || r.failure.Reason == task.NotOwner {
		w.figures.reroute(w, c)
	}
	switch {
	case d.Action == retry.Stop || w.now+d.After > c.began+deadline:
		w.figures.Failed++
		w.figures.done(w, c)
		return
	case d.Action == retry.Reroute:
		c.follow(r)
	case d.Action == retry.Other:
		c.hint = nil
		if c.picks {
			c.id.Number = w.rng.Int32N(int32(w.Partitions))
		}
	case r.failure.NotSent:
		c.hint = nil
	}
	w.at(w.now+d.After, func() { w.try(c) })
}

// follow goes where an answer said, unless an earlier one knew better.
func (c *call) follow(r reply) {
	if r.hint == nil || r.hint == c.at {
		c.hint = nil
		return
	}
	if r.epoch < c.epoch {
		return
	}
	c.hint, c.epoch = r.hint, r.epoch
}
