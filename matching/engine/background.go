package engine

import (
	"context"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/partition"
)

// The janitor looks ten times within the idle timeout, within these bounds.
const (
	shortestSweep = 100 * time.Millisecond
	longestSweep  = 30 * time.Second
)

// janitor unloads idle partitions, and keeps the raised counts and the shares of
// the read-ahead, until the engine stops.
func (e *Engine) janitor() {
	s := e.cfg.Settings().withDefaults()
	counts := s.Counts
	timer := time.NewTimer(sweepEvery(s.IdleTimeout))
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			return
		}
		idle := e.cfg.Settings().withDefaults().IdleTimeout
		e.sweep(idle)
		e.shareOut(nil)
		counts = e.maybeRaise(counts)
		timer.Reset(sweepEvery(idle))
	}
}

func sweepEvery(idle time.Duration) time.Duration {
	return min(max(idle/10, shortestSweep), longestSweep)
}

// sweep reads the rates and unloads what was idle for so long, one after the
// other: there is no hurry, and the commits of the others come first.
func (e *Engine) sweep(idle time.Duration) {
	now := time.Now()
	for _, q := range e.table.all() {
		if e.ctx.Err() != nil {
			return
		}
		e.rates.sample(q)
		if since, idles := q.IdleSince(); !idles || now.Sub(since) < idle {
			continue
		}
		e.evictIdle(q)
	}
}

// evictIdle unloads q. A store that does not answer must not hold up the others:
// after a while the partition is given up as it is, and loaded again when it is
// needed.
func (e *Engine) evictIdle(q *queue.Queue) {
	ctx, cancel := context.WithTimeout(e.closing, e.cfg.LoadTimeout)
	defer cancel()
	_, _ = e.table.evict(ctx, q.Partition(), q, Idle) // close logs what goes wrong
}

// catalogPage is how many partitions are listed at a time.
const catalogPage = 500

// preload loads the partitions that may hold tasks. What fails is loaded by the
// first call that needs it.
func (e *Engine) preload() {
	s := e.cfg.Settings().withDefaults()
	limiter := rate.NewLimiter(rate.Limit(s.PreloadRate), s.PreloadConcurrency)
	slots := make(chan struct{}, s.PreloadConcurrency)
	var loads sync.WaitGroup
	defer loads.Wait()
	began, count := time.Now(), 0
	err := e.raise(e.ctx, s.Counts.Read, func(l store.Listed) bool {
		if !l.Meta.MayHold {
			return true
		}
		if limiter.Wait(e.ctx) != nil {
			return false
		}
		select {
		case slots <- struct{}{}:
		case <-e.ctx.Done():
			return false
		}
		count++
		loads.Go(func() {
			defer func() { <-slots }()
			_, _ = e.table.get(e.ctx, l.Partition, true) // open logs what goes wrong
		})
		return true
	})
	if err != nil && e.ctx.Err() == nil {
		e.cfg.Logger.Warn("partitions that hold tasks cannot be listed; they are loaded when they are asked for", "error", err)
		return
	}
	loads.Wait()
	if count > 0 {
		e.cfg.Logger.Info("partitions that may hold tasks are loaded", "partitions", count, "took", time.Since(began))
	}
}

// eachListed calls f for each partition of the catalogue behind after, until f
// returns false.
func (e *Engine) eachListed(ctx context.Context, after partition.ID, f func(store.Listed) bool) error {
	for {
		listed, err := e.cfg.Store.List(ctx, after, catalogPage)
		if err != nil {
			return err
		}
		for _, l := range listed {
			if !f(l) {
				return nil
			}
		}
		if len(listed) < catalogPage {
			return nil
		}
		after = listed[len(listed)-1].Partition
	}
}
