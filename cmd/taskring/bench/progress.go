package bench

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// redraw is how often the progress line is written anew.
const redraw = 200 * time.Millisecond

// showProgress writes on a terminal how far the run is, until the function that it
// returns is called.
func (r *run) showProgress(w io.Writer) (stop func()) {
	stopped := make(chan struct{})
	var drawing sync.WaitGroup
	drawing.Go(func() {
		ticker := time.NewTicker(redraw)
		defer ticker.Stop()
		for {
			select {
			case <-stopped:
				return
			case <-ticker.C:
				_, _ = fmt.Fprint(w, "\r\033[K"+progressLine(r.mode, r.tasks, r.watched.Load())) // a terminal that is gone shows nothing
			}
		}
	})
	return func() {
		close(stopped)
		drawing.Wait()
		_, _ = fmt.Fprint(w, "\r\033[K") // as above
	}
}

func progressLine(mode string, tasks int, l *ledger) string {
	if l == nil {
		return mode + ": starting"
	}
	return fmt.Sprintf("%s: of %d tasks %d added, %d received", mode, tasks, l.answers.Load(), l.distinct.Load())
}
