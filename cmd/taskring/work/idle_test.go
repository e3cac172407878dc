package work

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

func TestIdle(t *testing.T) {
	quiet, busy := sight{known: true}, sight{known: true, ready: 1}
	worked := func(begun, ended int64) sight { return sight{known: true, begun: begun, ended: ended} }
	type look struct {
		at   int // seconds
		seen sight
		done bool
	}
	for name, looks := range map[string][]look{
		"quiet for three seconds":         {{0, quiet, false}, {2, quiet, false}, {3, quiet, true}},
		"no look before the limit":        {{0, quiet, false}, {9, quiet, true}},
		"the row begins at the first":     {{0, busy, false}, {5, quiet, false}, {7, quiet, false}, {8, quiet, true}},
		"a look at a full queue breaks":   {{0, quiet, false}, {2, busy, false}, {4, quiet, false}, {6, quiet, false}, {7, quiet, true}},
		"an unreachable node breaks":      {{0, quiet, false}, {2, sightOf(nil, status.Error(codes.Unavailable, "refused")), false}, {3, quiet, false}, {6, quiet, true}},
		"a task that runs here":           {{0, worked(1, 0), false}, {9, worked(1, 0), false}, {10, worked(1, 1), false}, {11, worked(1, 1), false}, {14, worked(1, 1), true}},
		"a task that came and went":       {{0, quiet, false}, {2, worked(1, 1), false}, {3, worked(1, 1), false}, {5, worked(1, 1), false}, {6, worked(1, 1), true}},
		"busy for ever never ends":        {{0, busy, false}, {100, busy, false}},
		"counted down again after a task": {{0, quiet, false}, {2, sight{known: true, leased: 1, begun: 1, ended: 0}, false}, {4, worked(1, 1), false}, {5, worked(1, 1), false}, {8, worked(1, 1), true}},
	} {
		t.Run(name, func(t *testing.T) {
			decision := idle{limit: 3 * time.Second}
			begun := time.Unix(1000, 0)
			for _, l := range looks {
				if got := decision.observe(begun.Add(time.Duration(l.at)*time.Second), l.seen); got != l.done {
					t.Errorf("after %d s: idle for long enough is %v, want %v", l.at, got, l.done)
				}
			}
		})
	}
}

// TestIdleAndScheduled: a task that is due within the limit is waited for, one
// that is due later is not, however long the worker has been there.
func TestIdleAndScheduled(t *testing.T) {
	begun := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	for name, c := range map[string]struct {
		seen sight
		ends int // seconds until the worker ends, looking every second; 0: not within 20
	}{
		"due far later":     {sight{known: true, scheduled: 1, nextDue: at(3600)}, 3},
		"due soon":          {sight{known: true, scheduled: 1, nextDue: at(2)}, 0},
		"due on the way":    {sight{known: true, scheduled: 1, nextDue: at(5)}, 0},
		"due behind that":   {sight{known: true, scheduled: 1, nextDue: at(7)}, 3},
		"due nobody knows":  {sight{known: true, scheduled: 1}, 0},
		"due in the past":   {sight{known: true, scheduled: 1, nextDue: at(-5)}, 0},
		"nothing scheduled": {sight{known: true, nextDue: at(1)}, 3},
	} {
		decision, ended := idle{limit: 3 * time.Second}, 0
		for second := 0; second <= 20 && ended == 0; second++ {
			if decision.observe(at(second), c.seen) {
				ended = second
			}
		}
		if ended != c.ends {
			t.Errorf("%s: ends after %d s, want %d", name, ended, c.ends)
		}
	}
}

func TestWaitsFor(t *testing.T) {
	now := time.Unix(1000, 0)
	soon, later := now.Add(2*time.Second), now.Add(time.Hour)
	for name, c := range map[string]struct {
		seen  sight
		waits string
	}{
		"nothing":           {sight{known: true}, ""},
		"no answer":         {sight{scheduled: 1, nextDue: soon}, ""},
		"ready":             {sight{known: true, ready: 1, leased: 1}, ""},
		"working itself":    {sight{known: true, leased: 1, begun: 1}, ""},
		"others work":       {sight{known: true, leased: 2}, "2 tasks at other workers"},
		"due soon":          {sight{known: true, scheduled: 1, nextDue: soon}, "1 scheduled task, the first is due in 2s"},
		"due nobody knows":  {sight{known: true, scheduled: 2}, "2 scheduled tasks"},
		"due in the future": {sight{known: true, scheduled: 1, nextDue: later}, ""},
	} {
		decision := idle{limit: 3 * time.Second}
		if got := decision.waitsFor(now, c.seen); got != c.waits {
			t.Errorf("%s: waits for %q, want %q", name, got, c.waits)
		}
	}
	if got, want := (sight{scheduled: 1, nextDue: later}).leaves(now), "1 scheduled task left for later, the first is due in 1h0m0s"; got != want {
		t.Errorf("leaves %q, want %q", got, want)
	}
	if got := (sight{}).leaves(now); got != "" {
		t.Errorf("an empty queue leaves %q", got)
	}
}

func TestSightOf(t *testing.T) {
	answer := func(s *matchingpb.QueueStats, missing ...*matchingpb.ItemError) *matchingpb.DescribeTaskQueueResponse {
		return &matchingpb.DescribeTaskQueueResponse{Stats: s, Missing: missing}
	}
	for name, c := range map[string]struct {
		reply *matchingpb.DescribeTaskQueueResponse
		err   error
		empty bool
	}{
		"nothing":          {answer(&matchingpb.QueueStats{WaitingPolls: 3}), nil, true},
		"dead letters":     {answer(&matchingpb.QueueStats{Dead: 2}), nil, true},
		"ready":            {answer(&matchingpb.QueueStats{Ready: 1}), nil, false},
		"scheduled":        {answer(&matchingpb.QueueStats{Scheduled: 1}), nil, false},
		"scheduled soon":   {answer(&matchingpb.QueueStats{Scheduled: 1, NextDueAt: timestamppb.Now()}), nil, false},
		"scheduled later":  {answer(&matchingpb.QueueStats{Scheduled: 1, NextDueAt: timestamppb.New(time.Now().Add(time.Hour))}), nil, true},
		"leased elsewhere": {answer(&matchingpb.QueueStats{Leased: 1}), nil, false},
		"partition silent": {answer(&matchingpb.QueueStats{}, &matchingpb.ItemError{Index: 2}), nil, false},
		"no queue yet":     {nil, wire.ToStatus(task.Errorf(task.NotFound, "no such queue")), true},
		"loading":          {nil, wire.ToStatus(task.Errorf(task.NotReady, "loading")), false},
		"cut off":          {nil, errors.New("broken pipe"), false},
	} {
		decision := idle{limit: 3 * time.Second}
		if got := !decision.busy(time.Now(), sightOf(c.reply, c.err)); got != c.empty {
			t.Errorf("%s: empty is %v, want %v", name, got, c.empty)
		}
	}
}
