package work

import (
	"errors"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// sight is what one look at the queue and at this worker showed.
type sight struct {
	// empty: the node answered, for every partition, and nothing is ready, due
	// or in flight.
	empty bool
	// Tasks that this worker has begun and ended since its start.
	begun, ended int64
}

// sightOf reads the answer to a describe. No answer, or one that lacks a
// partition, shows nothing, and so never counts as idle.
func sightOf(reply *matchingpb.DescribeTaskQueueResponse, err error) sight {
	if err != nil {
		// A queue that nobody has added to is as empty as can be.
		return sight{empty: errors.Is(wire.FromStatus(err), task.NotFound)}
	}
	stats := reply.GetStats()
	return sight{
		empty: len(reply.GetMissing()) == 0 && stats.GetReady() == 0 && stats.GetScheduled() == 0 && stats.GetLeased() == 0,
	}
}

// idle decides when a worker has had nothing to do for long enough. Its time
// runs only from one look that shows idleness to the next.
type idle struct {
	limit time.Duration

	since time.Time // of the first look of the idle row; zero when the last look was not idle
	last  sight
}

// observe takes in a look and reports whether the limit is reached. A task that
// was begun between two looks breaks the row although both show an empty queue.
func (i *idle) observe(now time.Time, s sight) bool {
	moved := s.begun != i.last.begun || s.ended != i.last.ended
	i.last = s
	if !s.empty || s.begun != s.ended || moved {
		i.since = time.Time{}
		return false
	}
	if i.since.IsZero() {
		i.since = now
	}
	return now.Sub(i.since) >= i.limit
}
