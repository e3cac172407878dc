package engine

import (
	"context"
	"sync/atomic"
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

// settingsEvery is how often the janitor looks whether settings changed, by a
// comparison of two pointers.
const settingsEvery = time.Second

// drainEvery is how often the janitor looks while partitions beyond their read
// count are loaded: polls that wait there find nothing, so they must not stay.
const drainEvery = 2 * time.Second

// janitor unloads idle partitions, and keeps the raised counts and the shares of
// the read-ahead, until the engine stops. Changed settings it sees to at once.
func (e *Engine) janitor() {
	seen := e.cfg.Version()
	raisedBy := seen
	swept := time.Now()
	draining := false
	e.findShortestIdle()
	timer := time.NewTimer(shortestSweep)
	defer timer.Stop()
	for {
		next := swept.Add(sweepEvery(e.idle.shortest(), draining))
		timer.Reset(min(time.Until(next), settingsEvery))
		select {
		case <-timer.C:
		case <-e.ctx.Done():
			return
		}
		next = swept.Add(sweepEvery(e.idle.shortest(), draining))
		changed := e.cfg.Version() != seen
		if !changed && time.Now().Before(next) {
			continue
		}
		if changed {
			seen = e.cfg.Version()
			e.refresh()
		}
		draining = e.sweep()
		e.shareOut(nil)
		raisedBy = e.maybeRaise(raisedBy)
		e.findShortestIdle()
		swept = time.Now()
	}
}

// refresh has changed settings reach the partitions that are loaded, one after
// the other: a bound that was raised lets those go on who wait for it.
func (e *Engine) refresh() {
	for _, q := range e.table.all() {
		if e.ctx.Err() != nil {
			return
		}
		q.Refresh()
	}
}

func sweepEvery(idle time.Duration, draining bool) time.Duration {
	every := min(max(idle/10, shortestSweep), longestSweep)
	if draining {
		every = min(every, drainEvery)
	}
	return every
}

// idleTimes knows the shortest idle timeout of what is loaded.
type idleTimes struct{ nanos atomic.Int64 }

func (t *idleTimes) shortest() time.Duration { return time.Duration(t.nanos.Load()) }

// loaded takes notice of a partition that is loaded.
func (t *idleTimes) loaded(timeout time.Duration) {
	for {
		old := t.nanos.Load()
		if int64(timeout) >= old || t.nanos.CompareAndSwap(old, int64(timeout)) {
			return
		}
	}
}

// findShortestIdle looks through all that is loaded, where partitions went or
// settings changed. What holds for a queue that no setting names counts too.
func (e *Engine) findShortestIdle() {
	e.idle.nanos.Store(int64(e.perQueue(partition.Queue{}).IdleTimeout))
	for _, q := range e.table.all() {
		e.idle.loaded(e.perQueue(q.Partition().Queue).IdleTimeout)
	}
}

// sweep reads the rates and unloads what was idle for too long, one after the
// other: there is no hurry, and the commits of the others come first. A drained
// partition beyond the read count goes at once: its polls end, learn the counts,
// and wait where tasks are added. It reports whether any partition beyond the
// read count was loaded.
func (e *Engine) sweep() (draining bool) {
	now := time.Now()
	for _, q := range e.table.all() {
		if e.ctx.Err() != nil {
			return draining
		}
		e.rates.sample(q)
		s := e.perQueue(q.Partition().Queue)
		beyond := q.Partition().Number >= s.Counts.Read
		draining = draining || beyond
		since, idles := q.IdleSince()
		if (beyond && q.Describe().Empty) || (idles && now.Sub(since) >= s.IdleTimeout) {
			e.evictIdle(q)
		}
	}
	return draining
}

// evictIdle unloads q. A store that does not answer must not hold up the others:
// after a while the partition is given up as it is, and loaded again when it is
// needed.
func (e *Engine) evictIdle(q *queue.Queue) {
	ctx, cancel := context.WithTimeout(e.closing, e.settings().LoadTimeout)
	defer cancel()
	_, _ = e.table.evict(ctx, q.Partition(), q, Idle) // close logs what goes wrong
}

// catalogPage is how many partitions are listed at a time.
const catalogPage = 500

// preload loads the partitions that may hold tasks. What fails is loaded by the
// first call that needs it.
func (e *Engine) preload() {
	p := preloading{engine: e, ended: make(chan struct{})}
	defer p.wait()
	began := time.Now()
	err := e.raise(e.ctx, func(l store.Listed) bool { return !l.Meta.MayHold || p.load(l.Partition) })
	if err != nil && e.ctx.Err() == nil {
		e.cfg.Logger.Warn("partitions that hold tasks cannot be listed; they are loaded when they are asked for", "error", err)
		return
	}
	p.wait()
	if p.count > 0 {
		e.cfg.Logger.Info("partitions that may hold tasks are loaded", "partitions", p.count, "took", time.Since(began))
	}
}

// preloading is the loads after a start. Their pace follows the settings.
type preloading struct {
	engine  *Engine
	limiter *rate.Limiter // made by the first load
	running int
	ended   chan struct{} // one for each load that ended
	count   int
}

// load begins to load a partition once its turn has come, and reports whether to
// go on.
func (p *preloading) load(id partition.ID) bool {
	e := p.engine
	s := e.settings()
	if p.limiter == nil {
		p.limiter = rate.NewLimiter(rate.Limit(s.PreloadRate), s.PreloadConcurrency)
	}
	p.limiter.SetLimit(rate.Limit(s.PreloadRate))
	if p.limiter.Wait(e.ctx) != nil {
		return false
	}
	for p.running >= e.settings().PreloadConcurrency {
		<-p.ended // soon when the engine stops: its context is that of the loads
		p.running--
	}
	p.running++
	p.count++
	go func() {
		_, _ = e.table.get(e.ctx, id, true) // open logs what goes wrong
		p.ended <- struct{}{}
	}()
	return e.ctx.Err() == nil
}

// wait waits for the loads that run.
func (p *preloading) wait() {
	for ; p.running > 0; p.running-- {
		<-p.ended
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
