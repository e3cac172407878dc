package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// TestChaos has producers and workers do random things while the server is
// killed again and again. An independent record of what the server answered
// then has to hold: nothing that was accepted is lost, nothing that was
// completed is handed out again, nothing that was refused is handed out.
//
//	producers --add--> server --poll--> workers --complete, fail, release,
//	    \                 ^                 /      heartbeat, forget
//	     \-------> record | kill -9 <------/
func TestChaos(t *testing.T) {
	rounds, d := 5, 3*time.Minute
	if long() {
		rounds, d = 50, 30*time.Minute
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed) // of what is done, not of when it meets the server
	ctx := limit(t, d)
	n := startNode(ctx, t)
	c := &chaos{t: t, client: n.client(), record: newRecord(), progress: make(chan struct{}, 1)}
	stop := c.start(ctx, seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	for round := range rounds {
		if !c.awaitAnswers(ctx, int64(300+chance.IntN(2000))) {
			t.Fatalf("the server stopped answering in round %d", round)
		}
		n.restart(ctx)
	}
	stop()
	c.drain(ctx)
	if err := n.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	n.start(ctx, n.GRPCAddr)
	if left := c.pollOnce(ctx, 1); len(left) > 0 {
		t.Errorf("after a planned restart %d tasks are handed out of an empty queue", len(left))
	}
	sums, wrong := c.record.judge()
	for _, what := range wrong[:min(len(wrong), 20)] {
		t.Error(what)
	}
	if len(wrong) > 20 {
		t.Errorf("and %d more", len(wrong)-20)
	}
	if sums.finished < 100*rounds || sums.uncertain > sums.finished/10 {
		t.Errorf("too little is certain: %+v", sums)
	}
	t.Logf("%+v", sums)
}

// chaos does random things and keeps the record.
type chaos struct {
	t        *testing.T
	client   *client.Client
	record   *record
	answers  atomic.Int64 // calls that the server answered
	progress chan struct{}
}

const (
	chaosProducers = 4
	chaosWorkers   = 6
	chaosLease     = time.Second
)

func chaosQueue() *matchingpb.TaskQueuePartition { return wire.EncodeQueue(queueNamed("chaos")) }

// start lets producers and workers loose. stop ends them and waits.
func (c *chaos) start(ctx context.Context, seed uint64) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var loose sync.WaitGroup
	for i := range chaosProducers + chaosWorkers {
		chance := rand.New(rand.NewPCG(seed, uint64(i)+1))
		loose.Go(func() {
			for number := 0; ctx.Err() == nil; number++ {
				act := c.work
				if i < chaosProducers {
					act = func(ctx context.Context, chance *rand.Rand) bool {
						return c.add(ctx, fmt.Sprintf("%d-%d", i, number), chance)
					}
				}
				if !act(ctx, chance) {
					rest(ctx)
				}
			}
		})
	}
	return func() { cancel(); loose.Wait() }
}

// rest keeps those whose server is gone from spinning.
func rest(ctx context.Context) {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// call bounds a call; what it did is wanted to be known, so it outlives the run.
func call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

// answered counts an answer and reports whether there was one.
func (c *chaos) answered(err error) bool {
	if err != nil {
		return false
	}
	c.answers.Add(1)
	select {
	case c.progress <- struct{}{}:
	default:
	}
	return true
}

// awaitAnswers waits for so many answers more.
func (c *chaos) awaitAnswers(ctx context.Context, more int64) bool {
	for until := c.answers.Load() + more; c.answers.Load() < until; {
		select {
		case <-c.progress:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

func (c *chaos) add(ctx context.Context, key string, chance *rand.Rand) bool {
	options := &matchingpb.TaskOptions{Priority: int32(1 + chance.IntN(5)), MaxAttempts: 1000}
	if chance.IntN(5) == 0 {
		options.Start = &matchingpb.TaskOptions_Delay{Delay: durationpb.New(time.Duration(chance.IntN(300)) * time.Millisecond)}
	}
	ctx, cancel := call(ctx)
	defer cancel()
	_, err := c.client.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: chaosQueue(), Payload: []byte(key), Options: options})
	c.record.added(key, err)
	return c.answered(err)
}

func (c *chaos) work(ctx context.Context, chance *rand.Rand) bool {
	grants := c.pollOnce(ctx, int32(1+chance.IntN(8)))
	for _, g := range grants {
		c.settle(ctx, g, chance)
	}
	return len(grants) > 0
}

// pollOnce polls and records what it brought.
func (c *chaos) pollOnce(ctx context.Context, most int32) []*matchingpb.TaskGrant {
	ctx, cancel := call(ctx)
	defer cancel()
	begun := c.record.now()
	reply, err := c.client.PollTask(ctx, &matchingpb.PollTaskRequest{
		TaskQueue: chaosQueue(), MaxTasks: most, Wait: durationpb.New(100 * time.Millisecond),
		LeaseDuration: durationpb.New(chaosLease), Format: matchingpb.GrantFormat_GRANT_FORMAT_TOKENS,
	})
	c.answered(err)
	for _, g := range reply.GetTasks() {
		c.record.granted(string(g.GetPayload()), begun)
	}
	return reply.GetTasks()
}

// settle does something with a task, mostly completes it.
func (c *chaos) settle(ctx context.Context, g *matchingpb.TaskGrant, chance *rand.Rand) {
	ctx, cancel := call(ctx)
	defer cancel()
	var err error
	switch chance.IntN(12) {
	case 0:
		_, err = c.client.FailTask(ctx, &matchingpb.FailTaskRequest{Token: g.GetToken(), Failure: &matchingpb.Failure{
			Message: "by chance", RetryAfter: durationpb.New(time.Duration(1+chance.IntN(200)) * time.Millisecond),
		}})
	case 1:
		_, err = c.client.ReleaseTask(ctx, &matchingpb.ReleaseTaskRequest{Token: g.GetToken()})
	case 2:
		_, err = c.client.HeartbeatTask(ctx, &matchingpb.HeartbeatTaskRequest{Token: g.GetToken()})
	case 3: // forgotten: the lease has to run out
	default:
		c.complete(ctx, g)
		return
	}
	c.answered(err)
}

func (c *chaos) complete(ctx context.Context, g *matchingpb.TaskGrant) {
	key := string(g.GetPayload())
	c.record.completing(key)
	_, err := c.client.CompleteTask(ctx, &matchingpb.CompleteTaskRequest{Token: g.GetToken()})
	if c.answered(err) {
		c.record.completed(key)
	} else if task.ReasonOf(wire.FromStatus(err)) == task.LeaseLost {
		c.record.refusedComplete(key)
	}
}

// drain completes what is left, until the server says that nothing is.
func (c *chaos) drain(ctx context.Context) {
	c.t.Helper()
	for {
		for _, g := range c.pollOnce(ctx, 100) {
			settle, cancel := call(ctx)
			c.complete(settle, g)
			cancel()
		}
		describe, cancel := call(ctx)
		reply, err := c.client.DescribeTaskQueue(describe, &matchingpb.DescribeTaskQueueRequest{TaskQueue: chaosQueue()})
		cancel()
		s := reply.GetStats()
		if err == nil && len(reply.GetMissing()) == 0 && s.GetReady() == 0 && s.GetScheduled() == 0 && s.GetLeased() == 0 {
			if dead := s.GetDead(); dead > 0 {
				c.t.Errorf("%d dead letters although every task has attempts left", dead)
			}
			return
		}
		if ctx.Err() != nil {
			c.t.Fatalf("the queue does not become empty: %v, %v", s, err)
		}
	}
}
