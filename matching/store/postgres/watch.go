package postgres

import (
	"fmt"
	"sync"
	"time"
)

// watch knows how long the commits in flight have been waiting for the server.
type watch struct {
	deadline time.Duration

	mu struct {
		sync.Mutex
		next    uint64
		started map[uint64]time.Time
	}
}

func newWatch(deadline time.Duration) *watch {
	w := &watch{deadline: deadline}
	w.mu.started = make(map[uint64]time.Time)
	return w
}

// begin notes that a commit began; the result is to be called at its end.
func (w *watch) begin() (end func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ticket := w.mu.next
	w.mu.next++
	w.mu.started[ticket] = time.Now()
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.mu.started, ticket)
	}
}

// healthy returns an error while a commit has been in flight past the deadline.
func (w *watch) healthy() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for _, started := range w.mu.started {
		if d := now.Sub(started); d >= w.deadline {
			return fmt.Errorf("a commit has been waiting for the server for %s, the deadline is %s", d.Round(time.Millisecond), w.deadline)
		}
	}
	return nil
}
