// Package interrupt turns signals into the end of a context: the first SIGINT
// or SIGTERM asks the command to finish, the second ends the process at once.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// key finds the signals in a context.
type key struct{}

// Signals is the state of one process.
type Signals struct {
	end  func(code int) // ends the process
	mu   sync.Mutex
	last []func() // run before the process ends at once
}

// Watch returns a context that ends with the first signal. The second one runs
// what [AtOnce] registered and ends the process with the code. stop gives the
// signals back their usual meaning.
func Watch(parent context.Context, code int) (ctx context.Context, stop func()) {
	received := make(chan os.Signal, 2)
	signal.Notify(received, os.Interrupt, syscall.SIGTERM)
	s := &Signals{end: os.Exit}
	ctx, cancel := context.WithCancel(context.WithValue(parent, key{}, s))
	finished := make(chan struct{})
	go s.run(received, cancel, func() { s.endWith(code) }, finished)
	return ctx, sync.OnceFunc(func() {
		signal.Stop(received)
		close(finished)
		cancel()
	})
}

func (s *Signals) run(received <-chan os.Signal, first, second func(), finished <-chan struct{}) {
	for _, act := range []func(){first, second} {
		select {
		case <-received:
			act()
		case <-finished:
			return
		}
	}
}

func (s *Signals) endWith(code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, last := range s.last {
		last()
	}
	s.end(code)
}

// AtOnce registers what has to happen before the process ends at once, such as
// ending processes that it started. It does nothing for a context that [Watch]
// did not make.
func AtOnce(ctx context.Context, last func()) {
	s, ok := ctx.Value(key{}).(*Signals)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = append(s.last, last)
}
