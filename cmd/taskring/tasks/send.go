package tasks

import (
	"context"
	"time"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// adder is the part of a client that adds batches.
type adder interface {
	// AddTasks is [matchingpb.MatchingServiceClient]'s.
	AddTasks(ctx context.Context, in *matchingpb.AddTasksRequest, opts ...grpc.CallOption) (*matchingpb.AddTasksResponse, error)
}

// Lines that were surely not added, for a reason that passes, are sent again
// for so long, after a rest that doubles from the first to the last.
const (
	resendFor = 15 * time.Second
	firstRest = 20 * time.Millisecond
	lastRest  = time.Second
)

// add sends the lines and returns one outcome a line, nil for added. The end of
// ctx ends the repetitions, not the call under way: its outcome matters.
func (s *sender) add(ctx context.Context, lines [][]byte) []error {
	outcomes := make([]error, len(lines))
	left := make([]int, len(lines)) // positions that are not settled
	for i := range left {
		left[i] = i
	}
	deadline := time.Now().Add(resendFor)
	for rest := firstRest; ; rest = min(2*rest, lastRest) {
		left = s.addOnce(ctx, lines, left, outcomes)
		if len(left) == 0 || time.Now().Add(rest).After(deadline) || !pause(ctx, rest) {
			return outcomes
		}
	}
}

// addOnce sends the lines at the given positions, records their outcomes and
// returns the positions worth another try.
func (s *sender) addOnce(ctx context.Context, lines [][]byte, at []int, outcomes []error) []int {
	payloads := make([][]byte, len(at))
	for i, position := range at {
		payloads[i] = lines[position]
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
	defer cancel()
	reply, err := s.client.AddTasks(call, &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{
		{TaskQueue: s.queue, Common: s.options, Payloads: payloads},
	}})
	results := itemErrors(reply, wire.FromStatus(err), len(at))
	var again []int
	for i, position := range at {
		outcomes[position] = results[i]
		if passes(results[i]) {
			again = append(again, position)
		}
	}
	return again
}

// itemErrors spreads the answer to one batch of n payloads over its items.
func itemErrors(reply *matchingpb.AddTasksResponse, err error, n int) []error {
	outcomes := make([]error, n)
	var result *matchingpb.AddResult
	switch {
	case err != nil:
	case len(reply.GetResults()) != 1:
		err = task.Errorf(task.OutcomeUnknown, "the node answered %d batches of 1", len(reply.GetResults()))
	default:
		result = reply.GetResults()[0]
		if result.GetError() != nil {
			err = wire.ErrorOfItem(result.GetError())
		}
	}
	for i := range outcomes {
		outcomes[i] = err
	}
	if err != nil {
		return outcomes
	}
	for _, e := range result.GetErrors() {
		if int(e.GetIndex()) < n {
			outcomes[e.GetIndex()] = wire.ErrorOfItem(e)
		}
	}
	return outcomes
}

// passes reports whether err says that nothing was added for a reason that goes
// away by itself.
func passes(err error) bool {
	if err == nil || wire.Guessed(err) {
		return false
	}
	return transient(task.ReasonOf(err))
}

func transient(r task.Reason) bool {
	switch r {
	case task.NotReady, task.PartitionClosing, task.NotOwner, task.StaleCounts, task.StoreUnavailable, task.Quota:
		return true
	default:
		return false
	}
}

// pause rests and reports whether ctx goes on.
func pause(ctx context.Context, rest time.Duration) bool {
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
