package queue

import (
	"context"
	"time"

	"github.com/taskring/taskring/matching/task"
)

// PollRequest asks for tasks.
type PollRequest struct {
	ID            string        // finds the poll for CancelPoll; may be empty
	Identity      string        // of the worker, for people
	Max           int           // how many tasks at most; below 1 counts as 1
	MaxBytes      int           // of payloads and headers in all, the first task excepted; 0 = no bound
	Wait          time.Duration // how long to wait for the first; 0 = not at all
	LeaseDuration time.Duration // 0 = what the task says
	MinPriority   task.Priority // only tasks at least this urgent; 0 = all
}

// Poll waits for tasks: it returns with at least one, or empty with the reason
// when the wait is over, ctx ended, or the partition goes away. Tasks that were
// granted to a caller who left are released at once.
func (q *Queue) Poll(ctx context.Context, r PollRequest) PollResult {
	p := &Poll{ID: r.ID, Identity: r.Identity, LeaseDuration: r.LeaseDuration, MaxBytes: r.MaxBytes, done: make(chan struct{})}
	q.event(func(now time.Time) {
		q.mu.active = now
		q.mu.pollers.begin(r.Identity, now)
		if q.mu.closing || q.mu.ended {
			p.Result.Empty = Shutdown
			if q.mu.core.Lost() {
				p.Result.Empty = Moved
			}
			close(p.done)
			return
		}
		q.mu.core.Wait(p, r.Max, r.MinPriority)
	})
	q.await(ctx, p, r.Wait)
	q.event(func(now time.Time) {
		q.mu.active = now
		q.mu.pollers.end(r.Identity, now)
	})
	if ctx.Err() != nil && len(p.Result.Grants) > 0 {
		q.giveBack(p.Result.Grants)
		return PollResult{Empty: Cancelled}
	}
	return p.Result
}

// await returns once the poll ended, ending it itself when the time is up.
func (q *Queue) await(ctx context.Context, p *Poll, wait time.Duration) {
	select {
	case <-p.done:
		return
	default:
	}
	reason := Timeout
	if wait > 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		case <-ctx.Done():
			reason = Cancelled
		}
	}
	q.event(func(time.Time) { q.mu.core.End(p, PollResult{Empty: reason}) })
	<-p.done // by this event, or by one that was faster
}

// giveBack releases grants that did not reach their worker.
func (q *Queue) giveBack(granted []Granted) {
	grants := make([]task.Grant, len(granted))
	for i, g := range granted {
		grants[i] = g.Grant
	}
	q.Release(grants)
}

// CancelPoll ends the waiting poll with the id, and reports whether there was one.
func (q *Queue) CancelPoll(id string) bool {
	found := false
	q.event(func(time.Time) {
		if p := q.mu.core.Find(id); p != nil {
			found = q.mu.core.End(p, PollResult{Empty: Cancelled})
		}
	})
	return found
}
