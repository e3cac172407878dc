package client

import (
	"runtime"
	"sync"
)

// slots are the free handlers of a worker, and the pollers that wait for some,
// in the order of their coming. A poller is hot when its last poll brought
// tasks.
//
//	8 free, 3 cold pollers wait          the first takes 3, the next 3, the last 2
//	8 free, 1 hot and 2 cold ones wait   each cold one takes 1, the hot one the rest
//
// So with fewer slots than partitions every partition gets its turn, and where
// the tasks are gets most of the slots.
type slots struct {
	mu struct {
		sync.Mutex
		closed  bool
		free    int
		held    int // by open polls
		waiting []*ticket
		hot     int // of those that wait
	}
}

// ticket is the place of a poller in the line.
type ticket struct {
	ready  chan struct{} // closed when it is its turn, or the slots are closed
	called bool          // ready is closed
	hot    bool
}

// share is what a poller takes.
type share struct {
	n    int
	idle int  // slots that are free or held by polls, these included
	hot  bool // a hot poller waits in line
}

func newSlots(n int) *slots {
	s := &slots{}
	s.mu.free = n
	return s
}

// take waits for free slots and takes the poller's share, at most that many. ok
// is false once the slots are closed.
//
// Between being called and taking the poller yields once: slots that are freed
// at the same time go into one poll.
func (s *slots) take(hot bool, most int) (sh share, ok bool) {
	s.mu.Lock()
	if s.mu.closed {
		s.mu.Unlock()
		return share{}, false
	}
	t := &ticket{ready: make(chan struct{}), hot: hot}
	s.mu.waiting = append(s.mu.waiting, t)
	if hot {
		s.mu.hot++
	}
	s.callLocked()
	s.mu.Unlock()
	<-t.ready
	runtime.Gosched()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return share{}, false
	}
	// Only the first in line is called, so it is this one, and what was free
	// when it was called still is.
	sh.n = min(s.shareLocked(hot), most)
	s.mu.free -= sh.n
	s.mu.held += sh.n
	s.mu.waiting = s.mu.waiting[1:]
	if hot {
		s.mu.hot--
	}
	sh.idle, sh.hot = s.mu.free+s.mu.held, s.mu.hot > 0
	s.callLocked()
	return sh, true
}

// shareLocked returns how many of the free slots the first in line takes, at
// least 1.
func (s *slots) shareLocked(hot bool) int {
	switch cold := len(s.mu.waiting) - s.mu.hot; {
	case s.mu.hot == 0:
		return divideUp(s.mu.free, cold)
	case !hot:
		return 1
	default:
		return divideUp(max(s.mu.free-cold, 1), s.mu.hot)
	}
}

func divideUp(n, by int) int { return (n + by - 1) / by }

// callLocked calls the first in line if there is something to take.
func (s *slots) callLocked() {
	if len(s.mu.waiting) == 0 || s.mu.free == 0 {
		return
	}
	if t := s.mu.waiting[0]; !t.called {
		t.called = true
		close(t.ready)
	}
}

// polled ends a poll that held n slots, of which used go to handlers.
func (s *slots) polled(n, used int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.held -= n
	s.mu.free += n - used
	s.callLocked()
}

// handled gives the slot of a handler back.
func (s *slots) handled() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.free++
	s.callLocked()
}

// close lets every poller go that waits or comes.
func (s *slots) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.closed = true
	for _, t := range s.mu.waiting {
		if !t.called {
			t.called = true
			close(t.ready)
		}
	}
	s.mu.waiting, s.mu.hot = nil, 0
}
