package client

import (
	"context"
	"sync"
)

// group runs goroutines that are waited for. Unlike a bare WaitGroup it may be
// asked for more while it is waited for: it then refuses.
type group struct {
	mu struct {
		sync.Mutex
		stopped bool
		running int
		idle    chan struct{} // made by stop; closed when stopped and nothing runs
	}
}

// run starts f, unless the group was stopped.
func (g *group) run(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.stopped {
		return false
	}
	g.mu.running++
	go func() {
		defer g.ended()
		f()
	}()
	return true
}

func (g *group) ended() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.running--
	if g.mu.stopped && g.mu.running == 0 {
		close(g.mu.idle)
	}
}

// stop refuses further goroutines and returns a channel that is closed once the
// last one ended. It may be called twice.
func (g *group) stop() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.mu.stopped {
		g.mu.stopped = true
		g.mu.idle = make(chan struct{})
		if g.mu.running == 0 {
			close(g.mu.idle)
		}
	}
	return g.mu.idle
}

// each runs f for 0..n-1, all at once, and waits for all; one alone runs in the
// caller's goroutine.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := 1; i < n; i++ {
		wg.Go(func() { f(i) })
	}
	if n > 0 {
		f(0)
	}
	wg.Wait()
}

// waitFor returns when the channel is closed or the context ends.
func waitFor(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
