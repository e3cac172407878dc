package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// gate holds the calls of one method, lone and joint, until it is opened.
type gate struct {
	method string
	open   chan struct{}
}

func (g *gate) before(ctx context.Context, method string, _ partition.ID) error {
	if method != g.method && method != g.method+"s" {
		return nil
	}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// held begins an add that stays in flight until the gate opens.
func held(t *testing.T, w *world) *gate {
	t.Helper()
	g := &gate{method: "AddTask", open: make(chan struct{})}
	w.nodes["n0"].before = g.before
	go func() { _, _ = w.client.AddTask(t.Context(), addRequest("held")) }()
	synctest.Wait()
	if got := w.nodes["n0"].seen(); !slices.Equal(got, []string{"AddTask"}) {
		t.Fatalf("calls %v, want one AddTask in flight", got)
	}
	return g
}

// result is what an add came to.
type result struct {
	payload string
	out     *matchingpb.AddTaskResponse
	err     error
}

// addMany begins adds at the same time and returns their results by payload.
func addMany(ctx context.Context, c *Client, payloads ...string) (wait func() map[string]result) {
	var wg sync.WaitGroup
	results := make([]result, len(payloads))
	for i, p := range payloads {
		wg.Go(func() {
			out, err := c.AddTask(ctx, addRequest(p))
			results[i] = result{p, out, err}
		})
	}
	return func() map[string]result {
		wg.Wait()
		byPayload := map[string]result{}
		for _, r := range results {
			byPayload[r.payload] = r
		}
		return byPayload
	}
}

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return out
}

func TestLoneCallLeavesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		began := time.Now()
		var reached time.Time
		w.nodes["n0"].before = func(context.Context, string, partition.ID) error {
			reached = time.Now()
			return nil
		}
		mustAdd(t, w.client, "a")
		grant := pollTokens(t, w.client, 1)[0]
		if _, err := w.client.HeartbeatTask(t.Context(), &matchingpb.HeartbeatTaskRequest{Token: grant.GetToken()}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.client.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: grant.GetToken()}); err != nil {
			t.Fatal(err)
		}
		if !reached.Equal(began) || !time.Now().Equal(began) {
			t.Errorf("calls reached the node %v after they began and took %v, want 0", reached.Sub(began), time.Since(began))
		}
		if got, want := w.nodes["n0"].seen(), []string{"AddTask", "PollTask", "HeartbeatTask", "CompleteTask"}; !slices.Equal(got, want) {
			t.Errorf("calls %v, want %v", got, want)
		}
		if s := w.client.Stats(); s.Calls != 4 || s.JointCalls != 0 {
			t.Errorf("stats %+v, want 4 calls, none joint", s)
		}
	})
}

func TestAddsDuringACallLeaveTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		g := held(t, w)
		wait := addMany(t.Context(), w.client, names("p", 64)...)
		synctest.Wait()
		if got := len(w.nodes["n0"].seen()); got != 1 {
			t.Errorf("%d calls left while one was in flight, want 0", got-1)
		}
		close(g.open)
		ids := map[uint64]bool{}
		for p, r := range wait() {
			if r.err != nil {
				t.Errorf("%s: %v", p, r.err)
			}
			ids[r.out.GetId()] = true
		}
		if len(ids) != 64 {
			t.Errorf("64 adds got %d ids", len(ids))
		}
		if got := len(w.nodes["n0"].seen()) - 1; got > 2 {
			t.Errorf("64 adds left in %d calls, want at most 2: sizes %v", got, w.nodes["n0"].sizes)
		}
	})
}

func TestCallerThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		g := held(t, w)
		// One gives up before its item leaves, one while it is on its way.
		joint := &gate{method: "AddTasks", open: make(chan struct{})}
		early, cancelEarly := context.WithCancel(t.Context())
		late, cancelLate := context.WithCancel(t.Context())
		waitEarly := addMany(early, w.client, "early")
		waitLate := addMany(late, w.client, "late")
		waitRest := addMany(t.Context(), w.client, "a", "b", "c")
		synctest.Wait()
		cancelEarly()
		if r := waitEarly()["early"]; status.Code(r.err) != codes.Canceled {
			t.Errorf("who gave up early got %v", r.err)
		}
		w.nodes["n0"].mu.Lock()
		w.nodes["n0"].before = joint.before
		w.nodes["n0"].mu.Unlock()
		close(g.open)
		synctest.Wait()
		cancelLate()
		if r := waitLate()["late"]; status.Code(r.err) != codes.Canceled {
			t.Errorf("who gave up late got %v", r.err)
		}
		close(joint.open)
		for p, r := range waitRest() {
			if r.err != nil {
				t.Errorf("%s, who stayed, got %v", p, r.err)
			}
		}
		tasks := w.nodes["n0"].tasks[testQueue.Partition(0)]
		stored := make([]string, 0, len(tasks))
		for _, f := range tasks {
			stored = append(stored, string(f.payload))
		}
		slices.Sort(stored)
		if want := []string{"a", "b", "c", "held", "late"}; !slices.Equal(stored, want) {
			t.Errorf("stored %v, want %v", stored, want)
		}
	})
}

func TestJointCallEndsWhenAllGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		g := held(t, w)
		ctx, cancel := context.WithCancel(t.Context())
		wait := addMany(ctx, w.client, "a", "b")
		synctest.Wait()
		var ended error
		w.nodes["n0"].mu.Lock()
		w.nodes["n0"].before = func(ctx context.Context, method string, _ partition.ID) error {
			if method == "AddTasks" {
				<-ctx.Done()
				ended = ctx.Err()
			}
			return ctx.Err()
		}
		w.nodes["n0"].mu.Unlock()
		close(g.open)
		synctest.Wait()
		cancel()
		wait()
		synctest.Wait()
		if ended == nil {
			t.Error("the call goes on although nobody waits for it")
		}
	})
}

func TestEachLeavesAtItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		g := held(t, w)
		began := time.Now()
		var left sync.Map
		for _, seconds := range []int{1, 3} {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(seconds)*time.Second)
				defer cancel()
				_, err := w.client.AddTask(ctx, addRequest("x"))
				left.Store(seconds, fmt.Sprintf("%v after %v", status.Code(err), time.Since(began)))
			}()
		}
		synctest.Wait()
		var deadline time.Duration
		w.nodes["n0"].mu.Lock()
		w.nodes["n0"].before = func(ctx context.Context, _ string, _ partition.ID) error {
			d, _ := ctx.Deadline()
			deadline = d.Sub(began)
			<-ctx.Done()
			return ctx.Err()
		}
		w.nodes["n0"].mu.Unlock()
		close(g.open)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		for seconds, want := range map[int]string{1: "DeadlineExceeded after 1s", 3: "DeadlineExceeded after 3s"} {
			if got, _ := left.Load(seconds); got != want {
				t.Errorf("the caller with %d s left with %v, want %s", seconds, got, want)
			}
		}
		if deadline != 3*time.Second {
			t.Errorf("the joint deadline is after %v, want the latest one, 3s", deadline)
		}
	})
}

func TestOnlyEqualMetadataIsJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		g := held(t, w)
		as := func(who string) context.Context {
			return metadata.AppendToOutgoingContext(t.Context(), "authorization", who)
		}
		var mu sync.Mutex
		sent := map[string]int{}
		w.nodes["n0"].mu.Lock()
		w.nodes["n0"].before = func(ctx context.Context, method string, id partition.ID) error {
			mu.Lock()
			who := strings.Join(metadata.ValueFromIncomingContext(ctx, "authorization"), ",")
			if method != "AddBatch" {
				sent[who+" "+method]++
			}
			mu.Unlock()
			return g.before(ctx, method, id)
		}
		w.nodes["n0"].mu.Unlock()
		// Each identity has its own first call and then its own batch.
		waits := []func() map[string]result{addMany(as("a"), w.client, names("a", 5)...), addMany(as("b"), w.client, names("b", 5)...)}
		synctest.Wait()
		close(g.open)
		for _, wait := range waits {
			for p, r := range wait() {
				if r.err != nil {
					t.Errorf("%s: %v", p, r.err)
				}
			}
		}
		for _, who := range []string{"a", "b"} {
			if n := sent[who+" AddTask"] + sent[who+" AddTasks"]; n < 1 || n > 2 {
				t.Errorf("identity %s made %d calls, want 1 or 2: %v", who, n, sent)
			}
		}
		if lanes := len(w.client.node("n0").mu.lanes); lanes != 1 {
			t.Errorf("%d lanes are left, want only the one without metadata", lanes)
		}
	})
}

func TestItemErrorsReachTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Queues: numbered(3)})
		bad := map[string]bool{"p3": true, "p7": true, "p8": true, "p63": true}
		w.nodes["n0"].refuse = func(payload string) error {
			if bad[payload] {
				return task.Errorf(task.Paused, "no %s today", payload)
			}
			return nil
		}
		g := held(t, w)
		wait := addMany(t.Context(), w.client, names("p", 64)...)
		synctest.Wait()
		close(g.open)
		for p, r := range wait() {
			switch {
			case bad[p] != (r.err != nil):
				t.Errorf("%s: %v", p, r.err)
			case bad[p] && !strings.Contains(r.err.Error(), "no "+p+" today"):
				t.Errorf("%s got another one's error: %v", p, r.err)
			case !bad[p] && !w.stores(r):
				t.Errorf("%s got another one's id or partition: %v", p, r.out)
			}
		}
	})
}

// stores reports whether the node has the add's payload under its id.
func (w *world) stores(r result) bool {
	for _, f := range w.nodes["n0"].tasks[testQueue.Partition(r.out.GetPartition())] {
		if uint64(f.id) == r.out.GetId() {
			return string(f.payload) == r.payload
		}
	}
	return false
}

func TestFullBatchesLeaveBesideACall(t *testing.T) {
	for name, s := range map[string]Settings{
		"items": {BatchItems: 10, BatchCalls: 3},
		"bytes": {BatchBytes: 10 * (100 + perItem), BatchCalls: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 1, Options{Settings: settings(s)})
				g := held(t, w)
				g2 := &gate{method: "AddTasks", open: make(chan struct{})}
				w.nodes["n0"].mu.Lock()
				w.nodes["n0"].before = func(ctx context.Context, method string, id partition.ID) error {
					return errors.Join(g.before(ctx, method, id), g2.before(ctx, method, id))
				}
				w.nodes["n0"].mu.Unlock()
				payloads := make([]string, 0, 100)
				for i := range 100 {
					payloads = append(payloads, fmt.Sprintf("%0100d", i))
				}
				wait := addMany(t.Context(), w.client, payloads...)
				synctest.Wait()
				if got := w.nodes["n0"].count("AddTasks"); got != 2 {
					t.Errorf("%d full batches left beside the call in flight, want 2: 3 calls in flight at most", got)
				}
				close(g2.open)
				close(g.open)
				for _, r := range wait() {
					if r.err != nil {
						t.Error(r.err)
					}
				}
				if largest := slices.Max(w.nodes["n0"].sizes); largest > 10 {
					t.Errorf("a batch has %d items, the limit is 10", largest)
				}
			})
		})
	}
}

func TestStuckCallHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		g := held(t, w)
		time.Sleep(20 * time.Millisecond)
		g2 := &gate{method: "none"}
		w.nodes["n0"].mu.Lock()
		w.nodes["n0"].before = g2.before
		w.nodes["n0"].mu.Unlock()
		if r := addMany(t.Context(), w.client, "a")()["a"]; r.err != nil {
			t.Errorf("an add behind a stuck call: %v", r.err)
		}
		close(g.open)
	})
}

func TestStopAnswersWhoWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		held(t, w)
		wait := addMany(t.Context(), w.client, "a", "b")
		synctest.Wait()
		w.client.Stop()
		w.client.Stop()
		for p, r := range wait() {
			if r.err == nil {
				t.Errorf("%s succeeded after Stop", p)
			}
		}
		if _, err := w.client.AddTask(t.Context(), addRequest("later")); err == nil {
			t.Error("an add after Stop succeeded")
		}
	})
}

func TestCompletionsAndHeartbeatsAreJoined(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		for _, p := range names("t", 40) {
			mustAdd(t, w.client, p)
		}
		grants := pollTokens(t, w.client, 40)
		g := &gate{method: "CompleteTask", open: make(chan struct{})}
		beat := &gate{method: "HeartbeatTask", open: make(chan struct{})}
		w.nodes["n0"].before = func(ctx context.Context, method string, id partition.ID) error {
			return errors.Join(g.before(ctx, method, id), beat.before(ctx, method, id))
		}
		lost := task.ID(grants[7].GetId())
		w.nodes["n0"].heard = func(id task.ID) error {
			if id == lost {
				return task.Errorf(task.LeaseLost, "gone")
			}
			return nil
		}
		var wg sync.WaitGroup
		for i, grant := range grants {
			wg.Go(func() {
				out, err := w.client.HeartbeatTask(t.Context(), &matchingpb.HeartbeatTaskRequest{Token: grant.GetToken()})
				if (err != nil) != (i == 7) || (err == nil && out.GetLeaseDuration().AsDuration() != 30*time.Second) {
					t.Errorf("heartbeat %d: %v, %v", i, out, err)
				}
			})
			wg.Go(func() {
				if out, err := w.client.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: grant.GetToken()}); err != nil || out.GetAlreadyFinished() {
					t.Errorf("completion %d: %v, %v", i, out, err)
				}
			})
		}
		synctest.Wait()
		close(g.open)
		close(beat.open)
		wg.Wait()
		for _, method := range []string{"CompleteTasks", "HeartbeatTasks"} {
			if n := w.nodes["n0"].count(method); n < 1 || n > 2 {
				t.Errorf("40 calls left in %d %s, want 1 or 2", n, method)
			}
		}
		if s := w.nodes["n0"].states(); s["done"] != 40 {
			t.Errorf("states %v, want 40 done", s)
		}
	})
}

// TestSameOptions holds the comparison by hand to proto.Equal, for each field of
// the options alone.
func TestSameOptions(t *testing.T) {
	list := []*matchingpb.TaskOptions{
		nil,
		{},
		{Headers: map[string]string{"a": "b"}},
		{Priority: 1},
		{FairnessKey: "k"},
		{FairnessWeight: 2},
		{Start: &matchingpb.TaskOptions_Delay{Delay: durationpb.New(time.Second)}},
		{Start: &matchingpb.TaskOptions_NotBefore{NotBefore: timestamppb.New(time.Unix(1, 0))}},
		{Expiry: durationpb.New(time.Second)},
		{MaxAttempts: 3},
		{RetryPolicy: &matchingpb.RetryPolicy{Jitter: 0.1}},
		{LeaseDuration: durationpb.New(time.Second)},
		{Durability: matchingpb.Durability_DURABILITY_HAND_OFF},
		{RequestId: "r"},
	}
	if fields := list[1].ProtoReflect().Descriptor().Fields().Len(); fields != len(list)-2 {
		t.Errorf("TaskOptions has %d fields, %d are compared here: teach sameOptions the new ones", fields, len(list)-2)
	}
	for i, a := range list {
		for j, b := range list {
			same := i == j || i+j == 1 // none and empty mean the same
			if got := sameOptions(proto.CloneOf(a), b); got != same {
				t.Errorf("sameOptions(%v, %v) = %v", a, b, got)
			}
		}
	}
}
