package client

import (
	"context"
	"sync"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// leases are the leases of a run's tasks, and when each is due for a
// heartbeat: a third of its duration after the last one, so that two may get
// lost.
type leases struct {
	mu struct {
		sync.Mutex
		running map[*execution]struct{}
		planned time.Time // when beat looks next; zero: when woken
	}
	wake chan struct{}
}

// idleLease is assumed where a node names no duration; none does.
const idleLease = 30 * time.Second

func (l *leases) init() {
	l.mu.running = map[*execution]struct{}{}
	l.wake = make(chan struct{}, 1)
}

func (l *leases) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.mu.running)
}

func (l *leases) add(e *execution, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	setDefault(&e.lease, idleLease)
	e.held, e.next = now, now.Add(e.lease/3)
	l.mu.running[e] = struct{}{}
	l.wakeForLocked(e.next)
}

// wakeForLocked makes beat look again if it would come too late. Most tasks
// have equal leases, so that one added later is due later.
func (l *leases) wakeForLocked(due time.Time) {
	if !l.mu.planned.IsZero() && !due.Before(l.mu.planned) {
		return
	}
	l.mu.planned = due
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *leases) remove(e *execution) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.mu.running, e)
}

// due returns the executions whose leases are to be extended now: those that
// are due, and those that soon will be, so that few calls carry many. It ends
// the contexts of those whose leases surely ran out. next is when to look
// again, zero when nothing is left.
func (l *leases) due(now time.Time) (batch []*execution, next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for e := range l.mu.running {
		runsOut := e.held.Add(e.lease)
		if !runsOut.After(now) {
			e.end(ErrLeaseLost)
			continue
		}
		look := runsOut
		if !e.beating {
			if e.next.Sub(now) <= e.lease/12 {
				e.beating = true
				batch = append(batch, e)
			} else {
				look = e.next
			}
		}
		if next.IsZero() || look.Before(next) {
			next = look
		}
	}
	l.mu.planned = next
	return batch, next
}

// beat sends heartbeats until the executions have ended.
func (r *run) beat() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.ended:
			return
		case <-r.leases.wake:
		case <-timer.C:
		}
		now := time.Now()
		batch, next := r.leases.due(now)
		timer.Stop()
		if !next.IsZero() {
			timer.Reset(next.Sub(now))
		}
		if len(batch) > 0 {
			r.goroutines.Go(func() { r.extend(batch, now) })
		}
	}
}

// extend sends the heartbeats of a batch, one call a node.
func (r *run) extend(batch []*execution, began time.Time) {
	groups := groupTokens(len(batch), func(i int) task.Token { return batch[i].task.token })
	shortest := batch[0].lease
	for _, e := range batch {
		shortest = min(shortest, e.lease)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.handling), max(shortest/3, time.Second/4))
	defer cancel()
	out, err := r.client.HeartbeatTasks(ctx, &matchingpb.HeartbeatTasksRequest{Batches: encodeGroups(groups)})
	if err != nil {
		out = &matchingpb.HeartbeatTasksResponse{}
	}
	for i, g := range groups {
		var result *matchingpb.HeartbeatResult
		if i < len(out.GetResults()) {
			result = out.GetResults()[i]
		} else {
			result = &matchingpb.HeartbeatResult{Error: wire.ItemErrorOf(0, task.Errorf(task.OutcomeUnknown, "no answer to a heartbeat: %v", err))}
		}
		errs := itemErrors(len(g.at), result.GetError(), result.GetErrors())
		for j, at := range g.at {
			e := batch[at]
			switch failed := errorAt(errs, j); {
			case contains(result.GetCancelled(), j) || task.ReasonOf(failed) == task.Cancelled:
				e.end(ErrTaskCancelled)
			case failed == nil:
				r.leases.extended(e, began, leaseDuration(leaseOf(result, j), 0))
			case task.ReasonOf(failed) == task.LeaseLost:
				e.end(ErrLeaseLost)
			default:
				r.leases.notExtended(e, time.Now())
			}
		}
	}
}

// extended counts a lease from when its heartbeat was sent: the node began it
// no earlier.
func (l *leases) extended(e *execution, sent time.Time, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if lease > 0 {
		e.lease = lease
	}
	e.beating, e.held, e.next = false, sent, sent.Add(e.lease/3)
	l.wakeForLocked(e.next)
}

// notExtended tries again soon: the node was away.
func (l *leases) notExtended(e *execution, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e.beating, e.next = false, now.Add(e.lease/10)
	l.wakeForLocked(e.next)
}
