package client

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// run is one Run of a worker.
//
//	pollers ──grants──> executions ──answers──> node
//	   ^                    │  ^
//	   └──────slots─────────┘  └── heartbeats
//
// A poller is a goroutine with at most one poll out; each read partition has
// PollsPerPartition of them. An execution is a goroutine with a handler.
type run struct {
	worker *Worker
	o      WorkerOptions
	client *Client
	// instance names this run to the server.
	instance string
	slots    *slots
	leases   leases

	// stop is closed when no more tasks are to be taken.
	stop     chan struct{}
	stopOnce sync.Once
	told     chan struct{} // closed when the server says stop
	toldOnce sync.Once
	// polling is the context of polls; it is cancelled when they do not end by
	// themselves.
	polling   context.Context //nolint:containedctx // of all polls of the run
	hangUp    context.CancelFunc
	handling  context.Context //nolint:containedctx // parent of the handlers' contexts
	abandon   context.CancelCauseFunc
	settling  slotCount // executions that settle after they gave their slot back
	executing sync.WaitGroup
	pollers   sync.WaitGroup
	// goroutines are the rest: heartbeats, cancellations of polls, releases.
	goroutines sync.WaitGroup
	ended      chan struct{} // closed when executions have ended: no more heartbeats

	mu struct {
		sync.Mutex
		stopped bool
		active  map[int32]int        // pollers by partition
		polls   map[string]*openPoll // by poll id
	}
}

// openPoll is a poll that is out.
type openPoll struct {
	number int32
	done   chan struct{} // closed when it came back
}

func newRun(ctx context.Context, w *Worker) *run {
	r := &run{
		worker: w, o: w.options, client: w.client,
		instance: "w" + strconv.FormatUint(rand.Uint64(), 36),
		slots:    newSlots(w.options.Concurrency),
		stop:     make(chan struct{}), told: make(chan struct{}), ended: make(chan struct{}),
	}
	r.leases.init()
	r.settling.most = int64(w.options.Concurrency) + 64
	// Neither may end with ctx: the worker drains after that.
	base := context.WithoutCancel(ctx)
	r.polling, r.hangUp = context.WithCancel(base)
	r.handling, r.abandon = context.WithCancelCause(base)
	r.mu.active = map[int32]int{}
	r.mu.polls = map[string]*openPoll{}
	return r
}

// partitions returns how many partitions are to be polled.
func (r *run) partitions() int32 { return max(r.client.countsOf(r.o.Queue).Read, 1) }

// adjust starts the pollers that are missing. Those of partitions that are no
// longer read end by themselves.
func (r *run) adjust() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.stopped {
		return
	}
	// Round by round: the first pollers of all partitions stand in line before
	// the second ones.
	for round := 1; round <= r.o.PollsPerPartition; round++ {
		for number := range r.partitions() {
			if r.mu.active[number] < round {
				r.mu.active[number]++
				r.pollers.Add(1)
				go r.poll(number)
			}
		}
	}
}

// surplus reports whether a poller's partition is no longer read, and counts
// the poller off if so.
func (r *run) surplus(number int32) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if number < r.partitions() {
		return false
	}
	r.mu.active[number]--
	return true
}

func (r *run) stopping() bool {
	select {
	case <-r.stop:
		return true
	default:
		return false
	}
}

// drain stops taking tasks and waits for what runs.
func (r *run) drain() error {
	deadline := time.Now().Add(r.o.DrainTimeout)
	r.endPolls(min(r.o.DrainTimeout, maxPollDrain))
	executed := make(chan struct{})
	go func() {
		r.executing.Wait()
		close(executed)
	}()
	left := 0
	if !happens(executed, time.Until(deadline)) {
		left = r.leases.len()
		r.o.Logger.Warn("handlers still run after the drain timeout; their contexts end now", "handlers", left, "drain_timeout", r.o.DrainTimeout)
		r.abandon(ErrDrainTimeout)
		if happens(executed, abandonGrace) {
			left = 0
		} else {
			left = r.leases.len()
		}
	}
	close(r.ended)
	r.goroutines.Wait()
	r.abandon(ErrDrainTimeout)
	if left > 0 {
		return fmt.Errorf("the worker stopped, but %d handlers of %v still run although their contexts ended %v ago", left, r.o.Queue, abandonGrace)
	}
	return nil
}

const (
	// maxPollDrain is how long polls may take to come back once they were
	// cancelled. Then their calls are broken off, and the node gives their
	// tasks to others.
	maxPollDrain = 5 * time.Second
	// abandonGrace is how long handlers may take to return once their contexts
	// ended.
	abandonGrace = 5 * time.Second
)

// happens waits for an event at most that long.
func happens(event <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(max(most, 0))
	defer timer.Stop()
	select {
	case <-event:
		return true
	case <-timer.C:
		select { // both at once
		case <-event:
			return true
		default:
			return false
		}
	}
}

// endPolls cancels the polls that are out and waits for all pollers.
func (r *run) endPolls(most time.Duration) {
	r.mu.Lock()
	r.mu.stopped = true
	r.stopOnce.Do(func() { close(r.stop) })
	for id, p := range r.mu.polls {
		r.goroutines.Go(func() { r.cancel(id, p) })
	}
	r.mu.Unlock()
	r.slots.close()
	back := make(chan struct{})
	go func() {
		r.pollers.Wait()
		close(back)
	}()
	if !happens(back, most) {
		r.hangUp()
		<-back
	}
	r.hangUp()
}

// cancel ends a poll that is out. A poll that has not reached its node yet
// cannot be cancelled there, so it is tried until the poll came back.
func (r *run) cancel(id string, p *openPoll) {
	for wait := 20 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		ctx, cancel := context.WithTimeout(r.polling, time.Second)
		_, err := r.client.CancelPoll(ctx, &matchingpb.CancelPollRequest{TaskQueue: wire.EncodePartition(r.o.Queue.Partition(p.number)), PollId: id})
		cancel()
		if err != nil {
			r.o.Logger.Debug("cancelling a poll", "poll_id", id, "error", err)
		}
		if happens(p.done, wait) || r.polling.Err() != nil {
			return
		}
	}
}
