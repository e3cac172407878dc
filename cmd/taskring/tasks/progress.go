package tasks

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/taskring/taskring/cmd/taskring/output"
)

// redraw is how often the progress line is written anew.
const redraw = 100 * time.Millisecond

// progress shows on a terminal how far the lines are. Elsewhere it does nothing.
type progress struct {
	out     io.Writer // nil: nobody watches
	total   int64     // bytes of the input; 0 when not known beforehand
	sender  *sender
	begun   time.Time
	stopped chan struct{}
	drawing sync.WaitGroup
}

func newProgress(w io.Writer, input io.Reader, s *sender) *progress {
	p := &progress{sender: s, stopped: make(chan struct{})}
	if output.IsTerminal(w) {
		p.out = w
	}
	if file, ok := input.(*os.File); ok {
		if stat, err := file.Stat(); err == nil && stat.Mode().IsRegular() {
			p.total = stat.Size()
		}
	}
	return p
}

func (p *progress) start() {
	if p.out == nil {
		return
	}
	p.begun = time.Now()
	p.drawing.Go(func() {
		ticker := time.NewTicker(redraw)
		defer ticker.Stop()
		for {
			select {
			case <-p.stopped:
				return
			case <-ticker.C:
				p.draw()
			}
		}
	})
}

// stop ends the progress line; what is printed next begins on a clean one.
func (p *progress) stop() {
	if p.out == nil {
		return
	}
	close(p.stopped)
	p.drawing.Wait()
	_, _ = fmt.Fprint(p.out, "\r\033[K") // a terminal that is gone shows nothing
}

func (p *progress) draw() {
	line := progressLine(p.sender.tally.sofar().Added, time.Since(p.begun), p.sender.lines.bytesRead(), p.total)
	_, _ = fmt.Fprint(p.out, "\r\033[K"+line) // see stop
}

// progressLine says how many tasks were added, how fast, and, when the size of
// the input is known, how much of it has been read.
func progressLine(added int64, elapsed time.Duration, read, total int64) string {
	line := fmt.Sprintf("%d tasks added, %.0f/s", added, float64(added)/max(elapsed.Seconds(), 0.001))
	if total <= 0 {
		return line
	}
	const width = 30
	part := min(1, float64(read)/float64(total))
	full := int(part * width)
	return fmt.Sprintf("[%s%s] %3.0f%%  %s", strings.Repeat("#", full), strings.Repeat("-", width-full), part*100, line)
}
