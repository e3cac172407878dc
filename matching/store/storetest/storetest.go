// Package storetest is the conformance suite of the stores: every store passes
// [Run], and whoever relies on the laws of package store may rely on any.
//
// Each case plays a short story of acquisitions and commits and compares what
// the store then answers with a model made of plain maps. The story is told
// several times: straight, and with a flush, a compaction or a reopening
// between its steps where the store has such things, since a store that keeps
// rows in layers may answer right from one layer and wrong from two. At the end
// a random story is told many times over.
//
// What the suite cannot see: whether an answer "stored" survives the loss of
// power (law S3), which each durable store shows on a file system that forgets.
package storetest

import (
	"testing"

	"github.com/taskring/taskring/matching/store"
)

// Store is what a store has to be.
type Store interface {
	store.Store
	store.Catalogue
}

// Harness is a new, empty store under test. The suite closes the store.
type Harness struct {
	Store Store

	// Reopen closes the store and opens it again with all that is durable. Nil
	// when the store does not survive its closing.
	Reopen func() (Store, error)
	// Flush moves what is in memory to files; Compact merges all files. Nil when
	// there is no such thing.
	Flush, Compact func() error
}

// Run runs the suite against stores that open makes.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	t.Helper()
	cases := []struct {
		name string
		run  func(*subject)
	}{
		{"acquire raises the epoch", acquireRaisesTheEpoch},
		{"acquire fences", acquireFences},
		{"acquire clears released", acquireClearsReleased},
		{"acquire fences commits in flight", acquireFencesCommitsInFlight},
		{"commit needs the epoch", commitNeedsTheEpoch},
		{"outcomes are separate", outcomesAreSeparate},
		{"each kind of row", eachKindOfRow},
		{"rows written over and over", rowsWrittenOverAndOver},
		{"old values stay gone", oldValuesStayGone},
		{"a task moves through its life", aTaskMovesThroughItsLife},
		{"deletes of nothing", deletesOfNothing},
		{"ranges", ranges},
		{"partitions are apart", partitionsAreApart},
		{"commits are not kept", commitsAreNotKept},
		{"cancelled calls", cancelledCalls},
		{"get sees each mutation whole", getSeesEachMutationWhole},
		{"scan sees each mutation whole", scanSeesEachMutationWhole},
		{"scan pages", scanPages},
		{"scan bounds", scanBounds},
		{"scan of nonsense", scanOfNonsense},
		{"scan among changes", scanAmongChanges},
		{"catalogue", catalogue},
		{"settings", settings},
		{"identity", identity},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { eachWay(t, open, c.run) })
	}
	t.Run("random stories", func(t *testing.T) { randomStories(t, open) })
}

// eachWay runs a story once for each way to put the store between its steps.
func eachWay(t *testing.T, open func(*testing.T) Harness, run func(*subject)) {
	t.Helper()
	for _, way := range []string{"straight", "flush", "compact", "reopen"} {
		h := open(t)
		s := &subject{TB: t, Harness: h}
		switch {
		case way == "straight":
		case way == "flush" && h.Flush != nil:
			s.between = s.flush
		case way == "compact" && h.Compact != nil:
			s.between = s.compact
		case way == "reopen" && h.Reopen != nil:
			s.between = s.reopen
		default:
			s.close()
			continue
		}
		t.Run(way, func(t *testing.T) {
			s.TB = t
			defer s.close()
			run(s)
		})
	}
}
