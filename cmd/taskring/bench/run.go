package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

const (
	// stalled is how long no task may be received before a run gives up.
	stalled = 30 * time.Second
	// tick is how often a condition at the node is looked at.
	tick = 10 * time.Millisecond
	// setUp bounds each such condition.
	setUp = 30 * time.Second
	// reachable is how long a node may take to answer the first call.
	reachable = 5 * time.Second
)

// run is one measurement.
type run struct {
	plan

	remote *remote.Flags
	server *ownServer // nil: nodes that were named

	calls     atomic.Int64
	producing *client.Client
	consuming *client.Client
	looking   *client.Client // its calls do not count
	ledger    *ledger
	watched   atomic.Pointer[ledger] // the same, once there is one, for who watches
	began     phases
}

// phases are the points in time that rates are counted from, on the ledger's clock.
type phases struct {
	adding, draining time.Duration
}

// measure runs the plan. When it got as far as having figures it returns them,
// also with an error.
func (r *run) measure(ctx context.Context) (*figures, error) {
	if err := r.dial(); err != nil {
		return nil, err
	}
	defer r.close()
	if err := r.reach(ctx); err != nil {
		return nil, err
	}
	before, err := r.usage(ctx)
	if err != nil {
		return nil, err
	}
	r.ledger = newLedger(r.tasks, r.payload)
	r.watched.Store(r.ledger)
	if r.mode == backlog {
		err = r.addThenDrain(ctx)
	} else {
		err = r.flow(ctx)
	}
	if err != nil {
		return nil, err
	}
	after, err := r.usage(ctx)
	if err != nil {
		return nil, err
	}
	return r.conclude(ctx, before, after)
}

// reach makes sure that there is a node to measure: nothing else says so at once.
func (r *run) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, reachable)
	defer cancel()
	_, err := r.looking.ListTaskQueues(ctx, &matchingpb.ListTaskQueuesRequest{PageSize: 1})
	return r.remote.Explain(err, "reaching a node")
}

// conclude makes the figures and judges the run.
func (r *run) conclude(ctx context.Context, before, after used) (*figures, error) {
	v := r.ledger.check()
	f := r.figures(v, before, after)
	if r.server != nil {
		mb, err := maxMemoryOf(r.server.PID)
		if err != nil {
			return nil, err
		}
		memory := rounded(mb)
		f.ServerMaxRSSMB = &memory
	}
	if v.lost > 0 || v.dups > 0 || v.swapped > 0 {
		return f, fmt.Errorf("the run is wrong: of %d tasks %d were lost, %d came twice, %d came under another id",
			r.tasks, v.lost, v.dups, v.swapped)
	}
	return f, r.await(ctx, "the queue to be empty once every task was completed", func(s looked) bool { return s.empty })
}

// addThenDrain adds all tasks before the first one is taken.
func (r *run) addThenDrain(ctx context.Context) error {
	r.began.adding = time.Since(r.ledger.begun)
	if err := r.produce(ctx); err != nil {
		return err
	}
	r.began.draining = time.Since(r.ledger.begun)
	stop := r.consume(ctx)
	return errors.Join(r.drained(ctx), stop())
}

// flow adds while workers wait.
func (r *run) flow(ctx context.Context) error {
	stop := r.consume(ctx)
	err := r.await(ctx, "a worker's poll to wait", func(s looked) bool { return s.polls > 0 })
	if err == nil {
		r.began.adding = time.Since(r.ledger.begun)
		err = r.produce(ctx)
	}
	if err == nil {
		err = r.drained(ctx)
	}
	return errors.Join(err, stop())
}

// drained waits until every task was received. A run that does not get on is
// over too: its check then finds what is lost.
func (r *run) drained(ctx context.Context) error {
	ticker := time.NewTicker(stalled)
	defer ticker.Stop()
	for seen := int64(-1); ; {
		select {
		case <-r.ledger.all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
		now := r.ledger.distinct.Load()
		if now == seen {
			return nil
		}
		seen = now
	}
}

// looked is what a look at the queue showed.
type looked struct {
	polls int64
	empty bool
}

// await waits until the queue looks as wanted.
func (r *run) await(ctx context.Context, what string, wanted func(looked) bool) error {
	ctx, cancel := context.WithTimeout(ctx, setUp)
	defer cancel()
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		reply, err := remote.Describe(ctx, r.looking, r.queue)
		if err == nil {
			s := reply.GetStats()
			empty := s.GetReady() == 0 && s.GetScheduled() == 0 && s.GetLeased() == 0 && s.GetDead() == 0
			if wanted(looked{polls: s.GetWaitingPolls(), empty: empty}) {
				return nil
			}
			err = fmt.Errorf("ready %d, scheduled %d, leased %d, dead %d, waiting polls %d",
				s.GetReady(), s.GetScheduled(), s.GetLeased(), s.GetDead(), s.GetWaitingPolls())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited %v for %s: %w", setUp, what, err)
		case <-ticker.C:
		}
	}
}

func (r *run) dial() error {
	count := grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			r.calls.Add(1)
			return call(ctx, method, req, reply, cc, opts...)
		})
	var errs [3]error
	r.producing, errs[0] = r.remote.DialWith(nil, count)
	r.consuming, errs[1] = r.remote.DialWith(nil, count)
	r.looking, errs[2] = r.remote.Dial(nil)
	return errors.Join(errs[:]...)
}

func (r *run) close() {
	for _, c := range []*client.Client{r.producing, r.consuming, r.looking} {
		if c != nil {
			c.Stop()
		}
	}
}

// usage reads what has been used so far.
func (r *run) usage(ctx context.Context) (u used, err error) {
	u.calls = r.calls.Load()
	if u.client, err = ownCPU(); err != nil || r.server == nil {
		return u, err
	}
	if u.server, err = cpuOf(r.server.PID); err != nil {
		return u, err
	}
	u.commits, u.records, err = storeWork(ctx, r.server.HTTPAddr)
	return u, err
}

// explain makes an error of a call readable.
func explain(err error, doing string) error { return fmt.Errorf("%s: %w", doing, wire.FromStatus(err)) }
