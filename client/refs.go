package client

import (
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// refsGroup are grants of one partition and epoch, and where they stood.
type refsGroup struct {
	refs wire.Refs
	// at has one entry per grant: its index in what was grouped.
	at []int
}

// groupTokens sorts n tokens by partition and epoch, each group in order.
func groupTokens(n int, token func(i int) task.Token) []*refsGroup {
	var groups []*refsGroup
	var last *refsGroup
	for i := range n {
		t := token(i)
		if last == nil || !last.refs.Takes(t) {
			last = groupOf(groups, t)
		}
		if last == nil {
			last = &refsGroup{refs: wire.RefsFor(t)}
			groups = append(groups, last)
		}
		last.refs.Add(t)
		last.at = append(last.at, i)
	}
	return groups
}

// groupOf finds the group that takes a token, or nil. There are as many groups
// as partitions, few.
func groupOf(groups []*refsGroup, t task.Token) *refsGroup {
	for _, g := range groups {
		if g.refs.Takes(t) {
			return g
		}
	}
	return nil
}

// itemErrors spreads the errors of a batch of n items; nil when there are none.
func itemErrors(n int, whole *matchingpb.ItemError, sparse []*matchingpb.ItemError) []error {
	if whole == nil && len(sparse) == 0 {
		return nil
	}
	out := make([]error, n)
	if whole != nil {
		err := wire.ErrorOfItem(whole)
		for i := range out {
			out[i] = err
		}
		return out
	}
	for _, e := range sparse {
		if int(e.GetIndex()) < n {
			out[e.GetIndex()] = wire.ErrorOfItem(e)
		}
	}
	return out
}

// errorAt returns the error of item i of what itemErrors returned.
func errorAt(errs []error, i int) error {
	if errs == nil {
		return nil
	}
	return errs[i]
}

// contains reports whether an ascending sparse list names index i.
func contains(sparse []uint32, i int) bool {
	for _, index := range sparse {
		if int(index) == i {
			return true
		}
	}
	return false
}
