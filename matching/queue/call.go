package queue

import (
	"context"
	"sync"
	"time"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/task"
)

// Result is what became of one task or grant of a [Call].
type Result struct {
	ID              task.ID
	Err             error
	Matched         bool          // Add: a worker had the task before the store did
	AlreadyFinished bool          // Complete: there was nothing left to do
	Dead            bool          // Fail: it was the last attempt
	NextAttempt     task.Micros   // Fail: when the task is due again
	LeaseDuration   time.Duration // Heartbeat: the lease runs so long from now
}

// Call is an operation on several tasks that was begun; [Call.Wait] ends it. It
// may be waited for by one goroutine at a time.
type Call struct {
	done chan struct{}

	mu struct {
		sync.Mutex
		results  []Result
		answered []bool
		open     int
	}
}

// newCall returns a call with n results to come.
func newCall(n int) *Call {
	c := &Call{done: make(chan struct{})}
	c.mu.results, c.mu.answered, c.mu.open = make([]Result, n), make([]bool, n), n
	if n == 0 {
		close(c.done)
	}
	return c
}

// failedCall returns a call whose n results are all the same error.
func failedCall(n int, err error) *Call {
	c := newCall(n)
	for i := range n {
		c.answer(ledger.Answer{Ticket: ledger.Ticket{Index: i}, Err: err})
	}
	return c
}

// Wait waits until every result is known, or ctx ends: then what is not known
// is OutcomeUnknown. The result has one element per task or grant, in order.
func (c *Call) Wait(ctx context.Context) []Result {
	select {
	case <-c.done:
		return c.mu.results // nobody writes to it any more
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	results := append([]Result(nil), c.mu.results...)
	for i := range results {
		if !c.mu.answered[i] {
			results[i].Err = task.Errorf(task.OutcomeUnknown, "the caller left before the store answered: %w", context.Cause(ctx))
		}
	}
	return results
}

// answer records one result.
func (c *Call) answer(a ledger.Answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.answered[a.Index] {
		return
	}
	c.mu.answered[a.Index] = true
	c.mu.results[a.Index] = Result{
		ID: a.ID, Err: a.Err, Matched: a.Matched, AlreadyFinished: a.AlreadyFinished,
		Dead: a.Dead, NextAttempt: a.NextAttempt, LeaseDuration: a.Duration,
	}
	c.mu.open--
	if c.mu.open == 0 {
		close(c.done)
	}
}
