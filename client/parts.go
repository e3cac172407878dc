package client

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// part is what a batched call has for one partition.
type part[B, R any] struct {
	trip  *trip
	batch B
	// at has one entry per item of the batch: its index in what the caller
	// gave. nil: the batch is as the caller gave it.
	at []int
	// What became of it: a result, or the error for all of its items.
	result R
	err    error
}

// partSender makes one call to a node for many parts, and returns one result a
// part.
type partSender[B, R any] struct {
	send func(ctx context.Context, n *node, batches []B) ([]R, error)
	// whole returns the error of a part that was not tried, or nil.
	whole func(R) *matchingpb.ItemError
}

// deliver sends parts to the nodes that own their partitions, all nodes at
// once, one call a node. Parts that fail as a whole are tried again by the
// rules of single calls, together; items that fail are the caller's.
func deliver[B, R any](ctx context.Context, c *Client, s partSender[B, R], parts []*part[B, R]) {
	open := parts
	for len(open) > 0 {
		routes := routed(ctx, open)
		each(len(routes), func(i int) { s.try(ctx, c.node(routes[i].address), routes[i].parts) })
		var wait time.Duration
		open, wait = failedParts(open)
		if len(open) == 0 || ctx.Err() != nil || pause(ctx, wait, open[0].err) != nil {
			return
		}
	}
}

// partRoute is a node and what goes there.
type partRoute[B, R any] struct {
	address string
	parts   []*part[B, R]
}

// routed sorts parts by node. Those that cannot be routed get their error.
func routed[B, R any](ctx context.Context, open []*part[B, R]) []*partRoute[B, R] {
	var routes []*partRoute[B, R]
	for _, p := range open {
		n, err := p.trip.node(ctx)
		p.err = err
		if err != nil {
			continue
		}
		i := slices.IndexFunc(routes, func(r *partRoute[B, R]) bool { return r.address == n.address })
		if i < 0 {
			i = len(routes)
			routes = append(routes, &partRoute[B, R]{address: n.address})
		}
		routes[i].parts = append(routes[i].parts, p)
	}
	return routes
}

func (s partSender[B, R]) try(ctx context.Context, n *node, parts []*part[B, R]) {
	batches := make([]B, len(parts))
	for i, p := range parts {
		batches[i] = p.batch
	}
	results, err := s.send(ctx, n, batches)
	err = sameNumber(err, len(batches), len(results))
	for i, p := range parts {
		if p.err = err; err != nil {
			continue
		}
		p.result = results[i]
		p.err = wire.ErrorOfItem(s.whole(results[i]))
	}
}

// failedParts returns the parts that are to be tried again, and after what wait.
func failedParts[B, R any](open []*part[B, R]) (again []*part[B, R], wait time.Duration) {
	for _, p := range open {
		if p.err == nil {
			continue
		}
		if after, ok := p.trip.plan(p.err); ok {
			again = append(again, p)
			wait = max(wait, after)
		}
	}
	return again, wait
}

// itemError returns the error of one item as the caller gets it.
func itemError(index int, err error) *matchingpb.ItemError {
	return wire.ItemErrorOf(index, public(err))
}

// place puts the errors of a part where its items stood: its own to each, or
// those of single items.
func place(into []*matchingpb.ItemError, at []int, whole error, sparse []*matchingpb.ItemError) []*matchingpb.ItemError {
	if whole != nil {
		for _, i := range at {
			into = append(into, itemError(i, whole))
		}
		return into
	}
	for _, e := range sparse {
		if int(e.GetIndex()) < len(at) {
			into = append(into, itemError(at[e.GetIndex()], wire.ErrorOfItem(e)))
		}
	}
	return into
}

// placeIndexes does the same for a list of indexes.
func placeIndexes(into []uint32, at []int, sparse []uint32) []uint32 {
	for _, i := range sparse {
		if int(i) < len(at) {
			into = append(into, uint32(at[i]))
		}
	}
	return into
}

// byIndex sorts sparse errors, as the service promises.
func byIndex(list []*matchingpb.ItemError) []*matchingpb.ItemError {
	slices.SortFunc(list, func(a, b *matchingpb.ItemError) int { return cmp.Compare(a.GetIndex(), b.GetIndex()) })
	return list
}

// refsCall is a batched call about grants.
type refsCall[R any] struct {
	kind   retry.Kind
	sender partSender[*matchingpb.GrantRefs, R]
	// refused returns a result that says that no item was tried.
	refused func(*matchingpb.ItemError) R
	// merge adds to into what a part says, or its error.
	merge func(into R, p *part[*matchingpb.GrantRefs, R])
	// bad adds to into the error of a token that cannot be read.
	bad func(into R, e *matchingpb.ItemError)
}

// refsOf is what such a call is about.
type refsOf struct {
	batches []*matchingpb.GrantRefs
	tokens  [][]byte
}

// settleMany answers batches in their order, and tokens, if any, together.
func settleMany[R any](ctx context.Context, c *Client, call refsCall[R], in refsOf) (results []R, byToken R) {
	batches, tokens := in.batches, in.tokens
	ctx, cancel := bounded(ctx, c.settings().Timeout)
	defer cancel()
	results = make([]R, len(batches))
	var parts []*part[*matchingpb.GrantRefs, R]
	owner := make([]int, 0, len(batches)) // batch of each part
	for i, b := range batches {
		id, err := wire.DecodePartition("partition", b.GetPartition())
		if err != nil {
			results[i] = call.refused(itemError(0, err))
			continue
		}
		parts = append(parts, &part[*matchingpb.GrantRefs, R]{trip: &trip{client: c, kind: call.kind, id: id}, batch: b})
		owner = append(owner, i)
	}
	if len(tokens) > 0 {
		byToken = call.refused(nil)
		parts = append(parts, call.tokenParts(c, tokens, byToken)...)
	}
	deliver(ctx, c, call.sender, parts)
	for i, p := range parts {
		switch {
		case p.at != nil:
			call.merge(byToken, p)
		case p.err != nil:
			results[owner[i]] = call.refused(itemError(0, p.err))
		default:
			results[owner[i]] = p.result
		}
	}
	return results, byToken
}

// tokenParts sorts tokens into parts. Those that cannot be read get their error.
func (call refsCall[R]) tokenParts(c *Client, tokens [][]byte, into R) []*part[*matchingpb.GrantRefs, R] {
	var read []task.Token
	var at []int
	for i, b := range tokens {
		token, err := wire.ParseToken(b)
		if err != nil {
			call.bad(into, itemError(i, err))
			continue
		}
		read, at = append(read, token), append(at, i)
	}
	groups := groupTokens(len(read), func(i int) task.Token { return read[i] })
	parts := make([]*part[*matchingpb.GrantRefs, R], len(groups))
	for i, g := range groups {
		parts[i] = &part[*matchingpb.GrantRefs, R]{
			trip:  &trip{client: c, kind: call.kind, id: g.refs.Partition},
			batch: g.refs.Encode(),
			at:    make([]int, len(g.at)),
		}
		for j, k := range g.at {
			parts[i].at[j] = at[k]
		}
	}
	return parts
}
