package frontend

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// waiting is a node at which polls wait, by id.
type waiting struct {
	mu    sync.Mutex
	polls map[string]chan struct{}
	deaf  bool // cancelling does not find polls
	asked int  // times that a poll was to be cancelled
}

func (w *waiting) poll(ctx context.Context, req any) (any, error) {
	ended := make(chan struct{})
	w.mu.Lock()
	if w.polls == nil {
		w.polls = map[string]chan struct{}{}
	}
	w.polls[req.(*matchingpb.PollTaskRequest).GetPollId()] = ended
	w.mu.Unlock()
	select {
	case <-ended:
		return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_CANCELLED}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (w *waiting) cancel(_ context.Context, in *matchingpb.CancelPollRequest) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	ended, ok := w.polls[in.GetPollId()]
	if !ok || w.deaf {
		return false
	}
	delete(w.polls, in.GetPollId())
	close(ended)
	return true
}

// TestPollsEndWithTheFrontend: each poll ends at its node and is answered with
// SHUTDOWN, one that comes later at once, one that the node does not know is broken
// off in the end.
func TestPollsEndWithTheFrontend(t *testing.T) {
	for _, deaf := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			node := &waiting{deaf: deaf}
			p := &polls{prefix: "f-", cancel: node.cancel}
			serve := func() {
				out, err := p.serve(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(orders)}, node.poll)
				if reply := out.(*matchingpb.PollTaskResponse); err != nil || reply.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN {
					t.Errorf("a poll ends with %v, %v", reply, err)
				}
			}
			const polls = 3 * mostCancels
			var open sync.WaitGroup
			for range polls {
				open.Go(serve)
			}
			synctest.Wait()
			if len(node.polls) != polls {
				t.Fatalf("%d polls have ids of their own, want %d", len(node.polls), polls)
			}
			begun := time.Now()
			p.stop(t.Context())
			took := time.Since(begun)
			open.Wait()
			serve()
			if !deaf && (took != 0 || node.asked != polls) {
				t.Errorf("stopping took %v and asked %d times for %d polls", took, node.asked, polls)
			}
			if deaf && took != cancelTimeout {
				t.Errorf("stopping took %v, want %v: until the polls are broken off", took, cancelTimeout)
			}
		})
	}
}

// TestGrantsBeatTheStop: a task that a poll brings while the frontend stops is
// handed to its caller.
func TestGrantsBeatTheStop(t *testing.T) {
	p := &polls{}
	granted := &matchingpb.PollTaskResponse{Tasks: []*matchingpb.TaskGrant{{Id: 1}}}
	out, err := p.serve(t.Context(), &matchingpb.PollTaskRequest{PollId: "own"}, func(_ context.Context, req any) (any, error) {
		if id := req.(*matchingpb.PollTaskRequest).GetPollId(); id != "own" {
			t.Errorf("the id of the poll became %q", id)
		}
		p.mu.Lock()
		p.mu.stopping = true
		p.mu.Unlock()
		return granted, nil
	})
	if err != nil || out != any(granted) {
		t.Errorf("%v, %v", out, err)
	}
}
