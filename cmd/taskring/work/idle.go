package work

import (
	"errors"
	"fmt"
	"time"

	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// sight is what one look at the queue and at this worker showed.
type sight struct {
	// known: the node answered, for every partition.
	known bool
	// Tasks by state; scheduled ones with the time at which the first of them is
	// due, zero when that is not known.
	ready, leased, scheduled int64
	nextDue                  time.Time
	// Tasks that this worker has begun and ended since its start.
	begun, ended int64
}

// sightOf reads the answer to a describe. No answer, or one that lacks a
// partition, shows nothing, and so never counts as idle.
func sightOf(reply *matchingpb.DescribeTaskQueueResponse, err error) sight {
	if err != nil {
		// A queue that nobody has added to is as empty as can be.
		return sight{known: errors.Is(wire.FromStatus(err), task.NotFound)}
	}
	stats := reply.GetStats()
	s := sight{
		known: len(reply.GetMissing()) == 0,
		ready: stats.GetReady(), leased: stats.GetLeased(), scheduled: stats.GetScheduled(),
	}
	if at := stats.GetNextDueAt(); at != nil {
		s.nextDue = at.AsTime()
	}
	return s
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
	if i.busy(now, s) || s.begun != s.ended || moved {
		i.since = time.Time{}
		return false
	}
	if i.since.IsZero() {
		i.since = now
	}
	return now.Sub(i.since) >= i.limit
}

// busy reports whether a look shows something to wait for. A task that is due
// only after the limit is none: it would be waited for whatever the limit is.
func (i *idle) busy(now time.Time, s sight) bool {
	return !s.known || s.ready > 0 || s.leased > 0 || i.dueSoon(now, s)
}

func (i *idle) dueSoon(now time.Time, s sight) bool {
	return s.scheduled > 0 && (s.nextDue.IsZero() || s.nextDue.Sub(now) <= i.limit)
}

// waitsFor says what keeps a worker that runs nothing itself from being idle;
// empty when that is nothing, or what it is about to take.
func (i *idle) waitsFor(now time.Time, s sight) string {
	switch {
	case !s.known || s.ready > 0 || s.begun != s.ended:
		return ""
	case s.leased > 0:
		return output.Count(s.leased, "task") + " at other workers"
	case i.dueSoon(now, s) && s.nextDue.IsZero():
		return output.Count(s.scheduled, "scheduled task")
	case i.dueSoon(now, s):
		return fmt.Sprintf("%s, the first is due in %v", output.Count(s.scheduled, "scheduled task"), output.Round(max(0, s.nextDue.Sub(now))))
	default:
		return ""
	}
}

// leaves says what a worker that ends leaves for later; empty when that is nothing.
func (s sight) leaves(now time.Time) string {
	if s.scheduled == 0 {
		return ""
	}
	return fmt.Sprintf("%s left for later, the first is due in %v", output.Count(s.scheduled, "scheduled task"), output.Round(s.nextDue.Sub(now)))
}
