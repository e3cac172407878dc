package file

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
)

// gather is how long the hints of one change are gathered before the file is
// looked at.
const gather = 20 * time.Millisecond

// Source follows a file. Made by [Open]. It may be used concurrently.
type Source struct {
	cfg     Config
	read    func() ([]byte, error)
	metrics func() error  // takes the instruments back
	done    chan struct{} // closed by Stop
	wg      sync.WaitGroup

	// Only the loop uses these, and Open before it.
	settler settler
	logged  logged

	mu struct {
		sync.Mutex
		status  Status
		started bool
		stopped bool
	}
}

// Open reads the file and publishes it. What is wrong with it is an error, see
// [Config.StartOnDefaults]. Changes are followed from Start on; call Stop in any
// case.
func Open(cfg Config) (*Source, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Source{cfg: cfg, done: make(chan struct{})}
	s.read = func() ([]byte, error) { return read(cfg.Path, cfg.MaxBytes) }
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// Start begins to follow the file. It does nothing when called again or after
// Stop.
func (s *Source) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.started || s.mu.stopped {
		return
	}
	s.mu.started = true
	hints := make(chan struct{}, 1)
	w := newWatch(s.cfg.Path, s.cfg.Logger)
	s.wg.Go(func() { w.run(s.done, hints) })
	s.wg.Go(func() { s.follow(hints, w.renew) })
}

// Stop ends following and waits. What is in force stays in force. It may be
// called more than once, and before Start.
func (s *Source) Stop() error {
	s.mu.Lock()
	first := !s.mu.stopped
	if first {
		close(s.done)
	}
	s.mu.stopped = true
	s.mu.Unlock()
	s.wg.Wait()
	if !first {
		return nil
	}
	return s.metrics()
}

func (s *Source) open() error {
	s.settler = settler{settle: s.cfg.Settle}
	s.mu.status.Path = s.cfg.Path
	content, err := s.read()
	s.settler.judged = sightOf(content, err)
	var next *dynamicconfig.Snapshot
	if err == nil {
		next, err = s.cfg.Registry.Parse(content)
	}
	if err != nil && !s.cfg.StartOnDefaults {
		return fmt.Errorf("dynamic settings, %s: %w", s.cfg.Path, err) // said by whoever does not start
	}
	s.settleOn(time.Now(), next, err)
	s.metrics, err = s.instrument()
	return err
}

// follow looks at the file when hinted at a change, when a change is to have
// settled, and every Poll. renew is called before each look.
func (s *Source) follow(hints <-chan struct{}, renew func()) {
	next := time.Now() // of the next look: at once, for what changed since Open
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-hints:
			if soon := time.Now().Add(gather); soon.Before(next) {
				next = soon
			}
		case <-timer.C:
			renew()
			next = time.Now().Add(s.look(time.Now()))
		}
		timer.Reset(time.Until(next))
	}
}

// look reads the file once and returns when to do so again at the latest.
func (s *Source) look(now time.Time) time.Duration {
	content, err := s.read()
	verdict, again := s.settler.see(now, sightOf(content, err))
	switch verdict {
	case judge:
		s.judge(now, content, err) // the status keeps the error, and the log tells it
	case restless:
		s.unsettled(now, errRestless)
	case rest:
		s.unsettled(now, nil)
	case wait:
	}
	s.repeat(now)
	if again == 0 {
		again = s.cfg.Poll
	}
	return min(again, s.cfg.Poll)
}

var errRestless = errors.New("the file keeps changing; it is loaded once it holds still")
