package file

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
)

// paper is a file in a bubble: it can be written, and tells of it or does not.
type paper struct {
	mu      sync.Mutex
	content string
	err     error
	hints   chan struct{}
}

func (p *paper) read() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return []byte(p.content), p.err
}

func (p *paper) put(content string, tell bool) {
	p.mu.Lock()
	p.content, p.err = content, nil
	p.mu.Unlock()
	p.hint(tell)
}

func (p *paper) lose(err error) {
	p.mu.Lock()
	p.err = err
	p.mu.Unlock()
	p.hint(true)
}

func (p *paper) hint(tell bool) {
	if tell {
		p.hints <- struct{}{}
	}
}

// inBubble runs a source with the default times on paper that says 10, until the
// test ends.
func inBubble(t *testing.T) (*paper, *Source, *book) {
	t.Helper()
	p := &paper{content: "test.limit: 10\n", hints: make(chan struct{}, 1000)}
	log := &book{refused: make(chan string, 1000)}
	r, err := dynamicconfig.NewRegistry(limit, toggle)
	must(t, err)
	s := &Source{cfg: Config{Path: "settings.yaml", Registry: r, Settings: live.New(nil), Logger: slog.New(log)}, read: p.read, done: make(chan struct{})}
	must(t, s.cfg.complete())
	must(t, s.open())
	s.wg.Go(func() { s.follow(p.hints, func() {}) })
	t.Cleanup(func() { must(t, s.Stop()) })
	synctest.Wait()
	return p, s, log
}

func expectLimit(t *testing.T, s *Source, want int) {
	t.Helper()
	synctest.Wait()
	if got := limit.Get(s.cfg.Settings.Snapshot()); got != want {
		t.Errorf("at %s the limit is %d, want %d", time.Now().Format("15:04:05.000"), got, want)
	}
}

func TestSettledIsLoaded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, _ := inBubble(t)
		p.put("test.limit: 20\n", true)
		time.Sleep(519 * time.Millisecond)
		expectLimit(t, s, 10)
		time.Sleep(2 * time.Millisecond) // gathered for 20 ms, still for 500 ms
		expectLimit(t, s, 20)
	})
}

// TestPollIsTheBackstop: nobody tells of the change.
func TestPollIsTheBackstop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, _ := inBubble(t)
		p.put("test.limit: 20\n", false)
		time.Sleep(10*time.Second + 501*time.Millisecond)
		expectLimit(t, s, 20)
	})
}

// TestSlowWriter writes a line every 400 ms, each time what would be a right
// file: only the whole one is loaded.
func TestSlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, _ := inBubble(t)
		text := "# settings\n"
		p.put(text, true)
		for i := range 10 {
			time.Sleep(400 * time.Millisecond)
			expectLimit(t, s, 10)
			text += fmt.Sprintf("# line %d\n", i)
			p.put(text, true)
		}
		time.Sleep(400 * time.Millisecond)
		p.put(text+"test.limit: 20\n", true)
		expectLimit(t, s, 10)
		time.Sleep(time.Second)
		expectLimit(t, s, 20)
	})
}

// TestUnfinishedEnds wait ten times as long: a file cut within a line means
// another value, one cut to nothing means all defaults.
func TestUnfinishedEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, _ := inBubble(t)
		p.put("test.limit: 2", true)
		time.Sleep(4 * time.Second)
		expectLimit(t, s, 10)
		p.put("test.limit: 20\n", true)
		time.Sleep(time.Second)
		expectLimit(t, s, 20)
		p.put("", true)
		time.Sleep(4 * time.Second)
		expectLimit(t, s, 20)
		time.Sleep(2 * time.Second) // it is meant
		expectLimit(t, s, 1)
		p.put("test.limit: 30", true)
		time.Sleep(6 * time.Second) // so is a file without a last line end
		expectLimit(t, s, 30)
	})
}

// TestGapOfReplacing: a file that is away for a moment is no failure; one that
// stays away is.
func TestGapOfReplacing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, log := inBubble(t)
		p.lose(errors.New("no such file"))
		time.Sleep(4 * time.Second)
		p.put("test.limit: 20\n", true)
		time.Sleep(time.Second)
		expectLimit(t, s, 20)
		if s.Status().Failing != nil || len(log.refused) > 0 {
			t.Errorf("a gap of 4 s: %v", s.Status())
		}
		p.lose(errors.New("no such file"))
		time.Sleep(6 * time.Second)
		expectLimit(t, s, 20)
		if status := s.Status().String(); !strings.Contains(status, "no such file") {
			t.Errorf("after 6 s: %v", status)
		}
		p.put("test.limit: 20\n", true)
		time.Sleep(time.Second)
		if s.Status().Failing != nil {
			t.Errorf("the same file is back: %v", s.Status())
		}
	})
}

// TestFailureIsRepeated: at once, then once a minute and not more often, whatever
// happens to the file; another mistake is said at once.
func TestFailureIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, log := inBubble(t)
		p.put("test.limit: -1\n", true)
		time.Sleep(time.Second)
		if len(log.refused) != 1 {
			t.Fatalf("%d lines after a second, want 1", len(log.refused))
		}
		since := s.Status().FailingSince
		for range 600 {
			time.Sleep(time.Second)
			p.hints <- struct{}{}
		}
		if n := len(log.refused); n < 10 || n > 11 {
			t.Errorf("%d lines in ten minutes, want one a minute", n)
		}
		log.take()
		p.put("test.limit: -2\n", true)
		time.Sleep(time.Second)
		if all := strings.Join(log.take(), "\n"); strings.Count(all, "-2 is below") != 1 {
			t.Errorf("another mistake, after a second:\n%s", all)
		}
		if !s.Status().FailingSince.Equal(since) {
			t.Errorf("failing since %v, not %v", s.Status().FailingSince, since)
		}
	})
}

// TestRestless: a file that changes for ever is reported, and loaded once it
// holds still; back at what it was, the report ends too.
func TestRestless(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, s, _ := inBubble(t)
		for _, last := range []string{"test.limit: 20\n", "test.limit: 20\n"} {
			for i := range 300 {
				p.put(fmt.Sprintf("test.limit: %d\n", 100+i), true)
				time.Sleep(300 * time.Millisecond)
			}
			if !errors.Is(s.Status().Failing, errRestless) {
				t.Errorf("after 90 s of changes: %v", s.Status())
			}
			p.put(last, true)
			time.Sleep(time.Second)
			expectLimit(t, s, 20)
			if s.Status().Failing != nil {
				t.Errorf("it holds still: %v", s.Status())
			}
		}
	})
}
