package client

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// lane joins concurrent calls of one kind to one node: natural batching. It
// keeps no timer and never waits for company:
//
//	nothing in flight   the call yields the processor once and leaves; alone, as
//	                    the plain unary call, in its caller's goroutine, unless
//	                    others came meanwhile
//	a call in flight    what comes waits for its answer, then leaves together
//	a batch is full     it leaves at once, while fewer than calls are in flight
//	the call in flight  it may be stuck: the next batch leaves beside it
//	is older than stuck
//
// The yield lets goroutines that are ready to call, such as those the last
// answer woke up, call first. It costs nothing when there are none.
//
// Each caller waits with its own context. One that gives up leaves at once; if
// its item was not sent by then it never is, and the others do not notice.
type lane[I, R any] struct {
	// limits is asked at each use, without locks.
	limits func() limits
	// alone makes the plain unary call.
	alone func(ctx context.Context, item I) (R, error)
	// joint makes one call for all items and settles each of them. The context
	// ends at the latest of their deadlines, or when nobody waits any more.
	joint func(ctx context.Context, batch []*waiter[I, R])
	// group runs the lane's goroutines; it refuses once the client stopped.
	group *group

	mu struct {
		sync.Mutex
		waiting  []*waiter[I, R]
		bytes    int       // of those in waiting
		inFlight int       // calls
		began    time.Time // when the last of them left
	}
}

// limits bound a lane.
type limits struct {
	calls int           // in flight, at least 1
	bytes int           // of one batch; a larger single item still leaves
	items int           // of one batch
	stuck time.Duration // age at which a call in flight no longer holds others up
}

// waiter is one call that waits in a lane or in a joint call.
type waiter[I, R any] struct {
	ctx  context.Context //nolint:containedctx // one context a caller, joined by the sender
	item I
	size int
	// settled receives one value, when result and err are set.
	settled chan struct{}
	result  R
	err     error
	// Guarded by lane.mu.
	gone bool  // the caller gave up before the item was sent
	ride *ride // set when it is sent
}

// settle answers the waiter. Each waiter of a batch is settled exactly once,
// also when its caller is gone.
func (w *waiter[I, R]) settle(result R, err error) {
	w.result, w.err = result, err
	w.settled <- struct{}{}
}

// do makes the call for one item of about size bytes, alone or with others.
func (l *lane[I, R]) do(ctx context.Context, item I, size int) (R, error) {
	bounds := l.limits()
	l.mu.Lock()
	if l.mu.inFlight == 0 {
		l.mu.inFlight, l.mu.began = 1, time.Now()
		l.mu.Unlock()
		runtime.Gosched()
		return l.first(ctx, item, size)
	}
	w := l.enqueueLocked(ctx, item, size)
	beside := l.mayLeaveLocked(bounds)
	if beside {
		l.mu.inFlight++
		l.mu.began = time.Now()
	}
	l.mu.Unlock()
	if beside {
		l.start()
	}
	return l.wait(ctx, w)
}

// first leaves with what came during the yield, or alone.
func (l *lane[I, R]) first(ctx context.Context, item I, size int) (R, error) {
	l.mu.Lock()
	if len(l.mu.waiting) > 0 {
		w := l.enqueueLocked(ctx, item, size)
		l.mu.Unlock()
		l.start()
		return l.wait(ctx, w)
	}
	l.mu.Unlock()
	// Deferred, so that a call that panics holds nobody up.
	defer l.next()
	return l.alone(ctx, item)
}

// next lets those leave who came while a lone call was in flight.
func (l *lane[I, R]) next() {
	l.mu.Lock()
	if len(l.mu.waiting) == 0 || l.mu.inFlight > 1 {
		l.mu.inFlight--
		l.mu.Unlock()
		return
	}
	l.mu.Unlock()
	l.start()
}

func (l *lane[I, R]) enqueueLocked(ctx context.Context, item I, size int) *waiter[I, R] {
	w := &waiter[I, R]{ctx: ctx, item: item, size: size, settled: make(chan struct{}, 1)}
	l.mu.waiting = append(l.mu.waiting, w)
	l.mu.bytes += size
	return w
}

// mayLeaveLocked reports whether what waits may leave beside the calls in
// flight.
func (l *lane[I, R]) mayLeaveLocked(bounds limits) bool {
	if l.mu.inFlight >= bounds.calls {
		return false
	}
	return l.fullLocked(bounds) || time.Since(l.mu.began) >= bounds.stuck
}

func (l *lane[I, R]) fullLocked(bounds limits) bool {
	return l.mu.bytes >= bounds.bytes || len(l.mu.waiting) >= bounds.items
}

func (l *lane[I, R]) wait(ctx context.Context, w *waiter[I, R]) (R, error) {
	select {
	case <-w.settled:
		return w.result, w.err
	case <-ctx.Done():
		l.leave(w)
		var none R
		return none, ctx.Err()
	}
}

// start runs the sender, which owns one of the calls in flight.
func (l *lane[I, R]) start() {
	if !l.group.run(l.send) {
		l.refuse()
	}
}

// send makes joint calls until nothing waits for this sender.
func (l *lane[I, R]) send() {
	for {
		runtime.Gosched()
		batch := l.take()
		switch len(batch) {
		case 0:
			return
		case 1:
			w := batch[0]
			w.settle(l.alone(w.ctx, w.item))
		default:
			ctx, cancel := l.together(batch)
			l.joint(ctx, batch)
			cancel()
		}
	}
}

// take returns the next batch, or nothing when the sender is to end. It ends
// while another call is in flight, unless a batch is full: what waits then
// leaves with the other's sender.
func (l *lane[I, R]) take() []*waiter[I, R] {
	bounds := l.limits()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dropGoneLocked()
	if len(l.mu.waiting) == 0 || (l.mu.inFlight > 1 && !l.fullLocked(bounds)) {
		l.mu.inFlight--
		return nil
	}
	n, bytes := 0, 0
	for n < len(l.mu.waiting) && n < bounds.items {
		size := l.mu.waiting[n].size
		if n > 0 && bytes+size > bounds.bytes {
			break
		}
		bytes += size
		n++
	}
	batch := l.mu.waiting[:n:n]
	shared := &ride{aboard: n}
	for _, w := range batch {
		w.ride = shared
	}
	l.mu.waiting = l.mu.waiting[n:]
	if len(l.mu.waiting) == 0 {
		l.mu.waiting = nil
	}
	l.mu.bytes -= bytes
	l.mu.began = time.Now()
	return batch
}

// dropGoneLocked forgets the waiters whose callers gave up.
func (l *lane[I, R]) dropGoneLocked() {
	kept := l.mu.waiting[:0]
	for _, w := range l.mu.waiting {
		if w.gone {
			l.mu.bytes -= w.size
			continue
		}
		kept = append(kept, w)
	}
	clear(l.mu.waiting[len(kept):])
	l.mu.waiting = kept
}

// refuse answers everybody who waits: the client stopped.
func (l *lane[I, R]) refuse() {
	l.mu.Lock()
	waiting := l.mu.waiting
	l.mu.waiting, l.mu.bytes = nil, 0
	l.mu.inFlight--
	l.mu.Unlock()
	var none R
	for _, w := range waiting {
		w.settle(none, errStopped)
	}
}

// ride is what the waiters of one joint call share. Guarded by lane.mu.
type ride struct {
	aboard int // waiters whose callers did not give up
	cancel context.CancelFunc
}

// leave is called by a caller that gives up.
func (l *lane[I, R]) leave(w *waiter[I, R]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.ride == nil {
		w.gone = true
		return
	}
	w.ride.aboard--
	if w.ride.aboard == 0 && w.ride.cancel != nil {
		w.ride.cancel()
	}
}

// together returns the context of a joint call: it carries what the first
// caller sends (they all send the same), ends at the latest deadline, and is
// cancelled once every caller gave up.
func (l *lane[I, R]) together(batch []*waiter[I, R]) (context.Context, context.CancelFunc) {
	ctx := untimed(context.WithoutCancel(batch[0].ctx))
	var cancel context.CancelFunc
	if latest, ok := latestDeadline(batch); ok {
		ctx, cancel = context.WithDeadline(ctx, latest)
	} else {
		ctx, cancel = context.WithCancel(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	shared := batch[0].ride
	shared.cancel = cancel
	if shared.aboard == 0 {
		cancel()
	}
	return ctx, cancel
}

// latestDeadline returns false when a caller has none.
func latestDeadline[I, R any](batch []*waiter[I, R]) (latest time.Time, ok bool) {
	for _, w := range batch {
		deadline, has := w.ctx.Deadline()
		if !has {
			return time.Time{}, false
		}
		if deadline.After(latest) {
			latest = deadline
		}
	}
	return latest, true
}
