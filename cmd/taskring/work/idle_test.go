package work

import (
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

func TestIdle(t *testing.T) {
	quiet, busy := sight{empty: true}, sight{}
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
		"a task that runs here":           {{0, sight{true, 1, 0}, false}, {9, sight{true, 1, 0}, false}, {10, sight{true, 1, 1}, false}, {11, sight{true, 1, 1}, false}, {14, sight{true, 1, 1}, true}},
		"a task that came and went":       {{0, quiet, false}, {2, sight{true, 1, 1}, false}, {3, sight{true, 1, 1}, false}, {5, sight{true, 1, 1}, false}, {6, sight{true, 1, 1}, true}},
		"busy for ever never ends":        {{0, busy, false}, {100, busy, false}},
		"counted down again after a task": {{0, quiet, false}, {2, sight{false, 1, 0}, false}, {4, sight{true, 1, 1}, false}, {5, sight{true, 1, 1}, false}, {8, sight{true, 1, 1}, true}},
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
		"leased elsewhere": {answer(&matchingpb.QueueStats{Leased: 1}), nil, false},
		"partition silent": {answer(&matchingpb.QueueStats{}, &matchingpb.ItemError{Index: 2}), nil, false},
		"no queue yet":     {nil, wire.ToStatus(task.Errorf(task.NotFound, "no such queue")), true},
		"loading":          {nil, wire.ToStatus(task.Errorf(task.NotReady, "loading")), false},
		"cut off":          {nil, errors.New("broken pipe"), false},
	} {
		if got := sightOf(c.reply, c.err).empty; got != c.empty {
			t.Errorf("%s: empty is %v, want %v", name, got, c.empty)
		}
	}
}
