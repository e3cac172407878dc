package frontend

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/matching/matchingpb"
)

// cancelTimeout is how long the nodes are given to end the polls. What is left is
// broken off; a node that then hands out a task finds nobody, and takes it back.
const cancelTimeout = 2 * time.Second

// cancelAgain is the wait before a node is asked again that did not know a poll: it
// may still be on its way.
const cancelAgain = 20 * time.Millisecond

// mostCancels is how many polls are being cancelled at a time.
const mostCancels = 64

// polls are the polls that wait, so that stopping ends them in good order: at
// their nodes, which then hand nothing out to them.
type polls struct {
	// cancel ends a poll at its node: the poll itself then returns, empty. It reports
	// whether the node knew the poll.
	cancel func(ctx context.Context, in *matchingpb.CancelPollRequest) bool
	prefix string // of the ids of polls that came without

	mu struct {
		sync.Mutex
		stopping bool
		next     uint64
		open     map[*openPoll]struct{}
	}
}

// openPoll is one poll that waits.
type openPoll struct {
	in       *matchingpb.CancelPollRequest
	breakOff context.CancelFunc
	returned chan struct{} // closed then
}

// serve lets a poll wait. One that the stop ends is answered with SHUTDOWN.
func (p *polls) serve(ctx context.Context, in *matchingpb.PollTaskRequest, next grpc.UnaryHandler) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, returned := p.begin(in, cancel)
	if returned == nil {
		return shutdown(), nil
	}
	defer returned()
	out, err := next(ctx, in)
	if !p.stopping() {
		return out, err
	}
	reply, _ := out.(*matchingpb.PollTaskResponse)
	if err != nil || len(reply.GetTasks())+len(reply.GetBatches()) == 0 {
		return shutdown(), nil
	}
	return reply, nil // a task was faster
}

func shutdown() *matchingpb.PollTaskResponse {
	return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN}
}

// begin remembers a poll, which gets an id if it has none, until returned is
// called. returned is nil once the stop has begun.
func (p *polls) begin(in *matchingpb.PollTaskRequest, breakOff context.CancelFunc) (named *matchingpb.PollTaskRequest, returned func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.stopping {
		return nil, nil
	}
	if in.GetPollId() == "" {
		p.mu.next++
		in = proto.CloneOf(in)
		in.PollId = p.prefix + strconv.FormatUint(p.mu.next, 36)
	}
	poll := &openPoll{
		in:       &matchingpb.CancelPollRequest{TaskQueue: in.GetTaskQueue(), PollId: in.GetPollId()},
		breakOff: breakOff, returned: make(chan struct{}),
	}
	if p.mu.open == nil {
		p.mu.open = map[*openPoll]struct{}{}
	}
	p.mu.open[poll] = struct{}{}
	return in, func() {
		close(poll.returned)
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.mu.open, poll)
	}
}

func (p *polls) stopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.stopping
}

// stop ends all polls; those that come later are answered at once. It returns
// when each has returned or was broken off.
func (p *polls) stop(ctx context.Context) {
	p.mu.Lock()
	p.mu.stopping = true
	open := slices.Collect(maps.Keys(p.mu.open))
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, cancelTimeout)
	defer cancel()
	slots := make(chan struct{}, mostCancels)
	var ending sync.WaitGroup
	for _, poll := range open {
		slots <- struct{}{}
		ending.Go(func() {
			defer func() { <-slots }()
			p.end(ctx, poll)
		})
	}
	ending.Wait()
}

// end has a poll cancelled until it returned, and breaks it off when ctx ends.
func (p *polls) end(ctx context.Context, poll *openPoll) {
	again := time.NewTicker(cancelAgain)
	defer again.Stop()
	for known := false; ; {
		known = known || p.cancel(ctx, poll.in)
		select {
		case <-poll.returned:
			return
		case <-ctx.Done():
			poll.breakOff()
			return
		case <-again.C:
		}
	}
}
