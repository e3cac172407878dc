package client

import (
	"context"
	"math/rand/v2"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// poller takes tasks from one partition.
type poller struct {
	run    *run
	number int32
	trip   *trip
	id     string // of the next poll
	failed int    // polls in a row
	hot    bool   // the last poll brought tasks
}

const (
	// maxTasksPerPoll is what a node gives at most.
	maxTasksPerPoll = 1000
	// shortWait is how long polls wait when there are partitions that no slot is
	// left for: they take turns.
	shortWait = time.Second
	// sharedWait is how long polls wait that hold more slots than one although
	// there are other partitions: those may have more use for them by then.
	sharedWait = 10 * time.Second
	// pollSlack is how much longer than its wait a poll's call may take.
	pollSlack = 10 * time.Second
	// toldFailures is after how many failures in a row the log says so, and then
	// also that it is over.
	toldFailures = 3
)

// poll polls a partition until the run stops or the partition is no longer
// read.
func (r *run) poll(number int32) {
	defer r.pollers.Done()
	p := &poller{run: r, number: number, id: r.client.polls.newID()}
	p.trip = &trip{client: r.client, kind: retry.Poll, id: r.o.Queue.Partition(number)}
	for !r.surplus(number) {
		sh, ok := r.slots.take(p.hot, maxTasksPerPoll)
		if !ok {
			return
		}
		out, err := p.once(sh)
		granted := decodeGrants(r, out)
		p.hot = len(granted) > 0
		r.slots.polled(sh.n, r.begin(granted, sh.n))
		r.adjust()
		if wait := p.next(out, err); wait > 0 && happens(r.stop, wait) {
			return
		}
	}
}

// waitFor returns how long a poll with its share of the slots waits for tasks.
func (p *poller) waitFor(sh share) time.Duration {
	partitions := int(p.run.partitions())
	scarce := sh.idle < 2*partitions
	switch wait := p.run.o.PollWait; {
	case partitions == 1:
		return wait
	case scarce && sh.hot:
		return 0 // somebody has use for the slot at once
	case scarce:
		return min(wait, shortWait)
	case sh.n > 1:
		return min(wait, sharedWait)
	default:
		return wait
	}
}

// once makes one poll.
func (p *poller) once(sh share) (*matchingpb.PollTaskResponse, error) {
	r := p.run
	open := &openPoll{number: p.number, done: make(chan struct{})}
	if !r.enter(p.id, open) {
		return &matchingpb.PollTaskResponse{}, nil
	}
	defer r.leave(p.id, open)
	wait := p.waitFor(sh)
	ctx, cancel := context.WithTimeout(r.polling, wait+pollSlack)
	defer cancel()
	in := &matchingpb.PollTaskRequest{
		TaskQueue:         wire.EncodePartition(p.trip.id),
		MaxTasks:          int32(sh.n),
		PollId:            p.id,
		Identity:          r.o.Identity,
		WorkerInstanceKey: r.instance,
		Wait:              durationpb.New(wait),
		Format:            matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS,
	}
	if r.o.LeaseDuration > 0 {
		in.LeaseDuration = durationpb.New(r.o.LeaseDuration)
	}
	token := r.client.balancer.Hold(p.trip.id)
	defer token.Release()
	return r.client.pollOnce(ctx, p.trip, in)
}

// next decides what follows a poll: under which id and after what wait.
func (p *poller) next(out *matchingpb.PollTaskResponse, err error) time.Duration {
	// An id is kept until a node answers: grants may be on their way under it.
	if answered(err) {
		p.id = p.run.client.polls.newID()
	}
	if err == nil {
		return p.nextAnswered(out)
	}
	p.failed++
	wait, again := p.trip.plan(err)
	if !again {
		p.trip.tries = retry.Tries{} // a worker does not give up
	}
	if p.failed == toldFailures || p.failed%100 == 0 {
		p.run.o.Logger.Warn("polling fails, and is tried again", "partition", p.trip.id, "failed", p.failed, "error", err)
	}
	return max(wait, retryPoll(p.failed))
}

func (p *poller) nextAnswered(out *matchingpb.PollTaskResponse) time.Duration {
	if p.failed >= toldFailures {
		p.run.o.Logger.Info("polling works again", "partition", p.trip.id, "failed", p.failed)
	}
	p.trip.tries, p.failed = retry.Tries{}, 0
	switch out.GetEmptyReason() {
	case matchingpb.EmptyReason_EMPTY_REASON_MOVED:
		wait, _ := p.trip.plan(movedError(out))
		return wait
	case matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN:
		return retryPoll(1)
	case matchingpb.EmptyReason_EMPTY_REASON_WORKER_SHUTDOWN:
		p.run.toldOnce.Do(func() { close(p.run.told) })
		return time.Minute // until stop
	default:
		return 0
	}
}

// retryPoll returns the wait after n failed polls: 50 ms doubling to 2 s, and
// as much again at random at most.
func retryPoll(n int) time.Duration {
	d := min(50*time.Millisecond<<min(n-1, 10), 2*time.Second)
	return d + rand.N(d)
}

// enter notes a poll that goes out; false when the run stops.
func (r *run) enter(id string, p *openPoll) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.stopped {
		return false
	}
	r.mu.polls[id] = p
	return true
}

func (r *run) leave(id string, p *openPoll) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.mu.polls, id)
	close(p.done)
}

// decodeGrants reads the grants of an answer, in either format. What cannot be
// read runs out at the node and comes again.
func decodeGrants(r *run, out *matchingpb.PollTaskResponse) []wire.Granted {
	var granted []wire.Granted
	for _, b := range out.GetBatches() {
		list, err := wire.DecodeColumns(b)
		if err != nil {
			r.o.Logger.Error("a node granted tasks in a form that cannot be read", "error", err)
			continue
		}
		granted = append(granted, list...)
	}
	for _, m := range out.GetTasks() {
		g, err := wire.DecodeToken(m)
		if err != nil {
			r.o.Logger.Error("a node granted a task in a form that cannot be read", "error", err)
			continue
		}
		granted = append(granted, g)
	}
	return granted
}

// begin starts the handlers of what a poll for n tasks brought, and returns how
// many. What comes while the run stops goes back, and so does what was not
// asked for.
func (r *run) begin(granted []wire.Granted, n int) int {
	if len(granted) == 0 {
		return 0
	}
	used := min(len(granted), n)
	if r.stopping() {
		used = 0
	}
	for _, g := range granted[:used] {
		r.execute(g)
	}
	if rest := granted[used:]; len(rest) > 0 {
		r.release(rest)
	}
	return used
}

// release gives grants back, all in one call a node.
func (r *run) release(granted []wire.Granted) {
	groups := groupTokens(len(granted), func(i int) task.Token { return granted[i].Token() })
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.polling), maxPollDrain)
	defer cancel()
	out, err := r.client.ReleaseTasks(ctx, &matchingpb.ReleaseTasksRequest{Batches: encodeGroups(groups)})
	if err != nil {
		r.o.Logger.Warn("tasks could not be given back; they come again when their leases run out", "tasks", len(granted), "error", err)
		return
	}
	for _, result := range out.GetResults() {
		if err := wire.ErrorOfItem(result.GetError()); err != nil {
			r.o.Logger.Warn("tasks could not be given back; they come again when their leases run out", "error", err)
		}
	}
}
