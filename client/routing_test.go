package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

func counts(read, write int32) PartitionCounts {
	return PartitionCounts{Counts: partition.Counts{Read: read, Write: write}}
}

// once returns a before hook that fails the first n calls of a method.
func once(method string, n int, err error) func(context.Context, string, partition.ID) error {
	return func(_ context.Context, m string, _ partition.ID) error {
		if m == method && n > 0 {
			n--
			return err
		}
		return nil
	}
}

func TestNewClientRefuses(t *testing.T) {
	for name, o := range map[string]Options{
		"no nodes":      {},
		"both":          {Addresses: []string{"a:1"}, Ring: mustStatic(t, "a:1")},
		"bad name":      {Addresses: []string{"a#1:1"}},
		"both settings": {Addresses: []string{"a:1"}, Dynamic: live.New(nil), Settings: settings(Settings{})},
	} {
		if c, err := NewClient(o); err == nil {
			c.Stop()
			t.Errorf("%s: no error", name)
		}
	}
}

func TestErrorTable(t *testing.T) {
	owner := func(address string, epoch task.Epoch) *task.Error {
		e := task.Errorf(task.NotOwner, "go away")
		e.Owner = &task.Ownership{Holder: task.Holder{Node: address, Address: address}, Epoch: epoch}
		return e
	}
	stale := task.Errorf(task.StaleCounts, "too few")
	stale.Stale = &task.Stale{Why: task.InvalidPartition, Counts: partition.Counts{Read: 1, Write: 1}}
	quota := task.Errorf(task.Quota, "slow down")
	quota.Limit = &task.Limit{Name: "matching.rps", RetryAfter: 2 * time.Second}
	for _, tc := range []struct {
		name    string
		err     error
		times   int
		request string // request id
		want    codes.Code
		calls   [2]int        // of AddTask at n0 and n1
		most    time.Duration // virtual time it may take
	}{
		{name: "invalid", err: task.Errorf(task.Invalid, "bad"), times: 1, want: codes.InvalidArgument, calls: [2]int{1, 0}},
		{name: "paused", err: task.Errorf(task.Paused, "later"), times: 1, want: codes.FailedPrecondition, calls: [2]int{1, 0}},
		{name: "not owner", err: owner("n1", 5), times: 1, calls: [2]int{1, 1}},
		{name: "not owner, no hint", err: owner("", 0), times: 3, calls: [2]int{4, 0}, most: 50 * time.Millisecond},
		{name: "stale once", err: stale, times: 1, calls: [2]int{2, 0}},
		{name: "stale for ever", err: stale, times: 9, want: codes.Unavailable, calls: [2]int{2, 0}},
		{name: "not ready", err: task.Errorf(task.NotReady, "loading"), times: 3, calls: [2]int{4, 0}, most: 300 * time.Millisecond},
		{name: "store away", err: task.Errorf(task.StoreUnavailable, "no disk"), times: 2, calls: [2]int{3, 0}, most: 60 * time.Millisecond},
		{name: "store away for ever", err: task.Errorf(task.StoreUnavailable, "no disk"), times: 99, want: codes.Unavailable, calls: [2]int{9, 0}, most: 4 * time.Second},
		{name: "unknown", err: task.Errorf(task.OutcomeUnknown, "?"), times: 1, want: codes.Unknown, calls: [2]int{1, 0}},
		{name: "unknown with request id", err: task.Errorf(task.OutcomeUnknown, "?"), times: 1, request: "r", calls: [2]int{2, 0}, most: 20 * time.Millisecond},
		{name: "quota", err: quota, times: 1, calls: [2]int{2, 0}, most: 2400 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, 2, Options{Ring: newFixedRing("n0")})
				w.nodes["n0"].before = once("AddTask", tc.times, tc.err)
				in := addRequest("x")
				in.Options = &matchingpb.TaskOptions{RequestId: tc.request}
				began := time.Now()
				_, err := w.client.AddTask(t.Context(), in)
				if status.Code(err) != tc.want {
					t.Errorf("answer %v, want code %v", err, tc.want)
				}
				if took := time.Since(began); took > tc.most {
					t.Errorf("took %v, want at most %v", took, tc.most)
				}
				for i, address := range []string{"n0", "n1"} {
					if got := w.nodes[address].count("AddTask"); got != tc.calls[i] {
						t.Errorf("%s was called %d times, want %d", address, got, tc.calls[i])
					}
				}
				if r := task.ReasonOf(wire.FromStatus(err)); err != nil && (r == task.NotOwner || r == task.StaleCounts) {
					t.Errorf("%v was passed on", r)
				}
			})
		})
	}
}

func TestOfTwoHintsTheHigherEpochWins(t *testing.T) {
	tr := &trip{address: "n0"}
	tr.follow(&task.Ownership{Holder: task.Holder{Address: "n1"}, Epoch: 7})
	tr.address = "n1"
	tr.follow(&task.Ownership{Holder: task.Holder{Address: "n2"}, Epoch: 6})
	if tr.hint != "n1" {
		t.Errorf("after epochs 7 and 6 the hint is %q, want n1", tr.hint)
	}
	tr.follow(&task.Ownership{Holder: task.Holder{Address: "n3"}, Epoch: 8})
	if tr.hint != "n3" {
		t.Errorf("after epoch 8 the hint is %q, want n3", tr.hint)
	}
	tr.address = "n3"
	tr.follow(&task.Ownership{Holder: task.Holder{Address: "n3"}, Epoch: 9})
	if tr.hint != "" {
		t.Errorf("a hint to the node that gave it is followed: %q", tr.hint)
	}
}

func TestNodeThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		w.cut("n0")
		began := time.Now()
		_, err := w.client.AddTask(t.Context(), addRequest("x"))
		if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "n0") || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("the add was answered with %v, want Unavailable that names the node and the cause", err)
		}
		if took := time.Since(began); took < time.Second || took > 5*time.Second {
			t.Errorf("gave up after %v, want 1 to 5 s", took)
		}
		// It comes back while a call, surely not sent before, is tried again.
		go func() {
			time.Sleep(500 * time.Millisecond)
			w.serve("n0")
		}()
		mustAdd(t, w.client, "y")
		if s := w.nodes["n0"].states(); s["ready"] != 1 {
			t.Errorf("states %v, want one task", s)
		}
	})
}

func TestConnectionThatBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		mustAdd(t, w.client, "x")
		grant := pollTokens(t, w.client, 1)[0]
		breaks := func(method string) {
			w.nodes["n0"].mu.Lock()
			defer w.nodes["n0"].mu.Unlock()
			w.nodes["n0"].before = func(ctx context.Context, m string, _ partition.ID) error {
				if m == method {
					method = ""
					go w.cut("n0")
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			}
		}
		breaks("AddTask")
		_, err := w.client.AddTask(t.Context(), addRequest("y"))
		if e := wire.FromStatus(err); !errors.Is(e, task.OutcomeUnknown) {
			t.Errorf("an add on a broken connection was answered with %v, want OUTCOME_UNKNOWN", err)
		}
		w.serve("n0")
		breaks("CompleteTask")
		go func() {
			time.Sleep(100 * time.Millisecond)
			w.serve("n0")
		}()
		if _, err := w.client.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: grant.GetToken()}); err != nil {
			t.Errorf("a completion on a broken connection was not repeated: %v", err)
		}
		if n := w.nodes["n0"].count("CompleteTask"); n != 2 {
			t.Errorf("%d completions, want 2", n)
		}
	})
}

func TestPayloadLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Settings: settings(Settings{MaxPayloadBytes: 10})})
		_, err := w.client.AddTask(t.Context(), addRequest("12345678901"))
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "11 bytes") || !strings.Contains(err.Error(), "limit is 10 (matching.maxPayloadBytes)") {
			t.Errorf("answer %v, want INVALID_ARGUMENT that names size, limit and setting", err)
		}
		out, err := w.client.AddTasks(t.Context(), &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{
			{TaskQueue: wire.EncodeQueue(testQueue), Payloads: [][]byte{[]byte("a"), []byte("12345678901"), []byte("b")}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		r := out.GetResults()[0]
		if len(r.GetErrors()) != 1 || r.GetErrors()[0].GetIndex() != 1 || r.GetIds()[0] == 0 || r.GetIds()[1] != 0 || r.GetIds()[2] == 0 {
			t.Errorf("result %v, want only item 1 refused", r)
		}
		if got := w.nodes["n0"].seen(); !slices.Equal(got, []string{"AddTasks"}) {
			t.Errorf("calls %v: the lone add was sent", got)
		}
	})
}

// TestAddCarriesEverything guards the copy of a request that AddTask makes to
// name the partition: a field added to the message has to be carried too.
func TestAddCarriesEverything(t *testing.T) {
	fields := (&matchingpb.AddTaskRequest{}).ProtoReflect().Descriptor().Fields()
	got := make([]protoreflect.Name, 0, fields.Len())
	for i := range fields.Len() {
		got = append(got, fields.Get(i).Name())
	}
	if want := []protoreflect.Name{"task_queue", "payload", "options", "forwarded"}; !slices.Equal(got, want) {
		t.Errorf("AddTaskRequest has the fields %v: carry the new ones in addTrip and name them here", got)
	}
}

func TestCountsAreLearned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		node := w.nodes["n0"]
		node.counts = counts(4, 4)
		mustAdd(t, w.client, "x") // partition 0, by the settings; the trailer brings 4
		if got := w.client.countsOf(testQueue); got.Read != 4 || got.Write != 4 {
			t.Fatalf("counts after an answer: %+v, want 4/4", got)
		}
		var sent PartitionCounts
		node.before = func(ctx context.Context, _ string, _ partition.ID) error {
			sent, _ = wire.ParsePartitionCountsFromIncomingContext(ctx)
			return nil
		}
		for range 200 {
			mustAdd(t, w.client, "x")
		}
		if sent.Read != 4 || sent.Write != 4 {
			t.Errorf("an add carried counts %+v, want 4/4", sent)
		}
		for n := range int32(4) {
			if got := len(node.tasks[testQueue.Partition(n)]); got < 20 { // 50 expected
				t.Errorf("partition %d got %d of 200 adds", n, got)
			}
		}
		node.counts = PartitionCounts{}
		mustAdd(t, w.client, "x")
		if got := w.client.countsOf(testQueue); got.Read != 1 || got.Write != 1 {
			t.Errorf("counts after an answer with zeros: %+v, want those of the settings", got)
		}
	})
}

func TestRequestIDStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Queues: numbered(8)})
		at := map[int32]bool{}
		for range 30 {
			in := addRequest("x")
			in.Options = &matchingpb.TaskOptions{RequestId: "the one"}
			out, err := w.client.AddTask(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			at[out.GetPartition()] = true
		}
		if len(at) != 1 {
			t.Errorf("30 adds with one request id went to %d partitions", len(at))
		}
	})
}

func TestPollsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Queues: numbered(4)})
		ctx, cancel := context.WithCancel(t.Context())
		for range 12 {
			go func() {
				_, _ = w.client.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(testQueue)})
			}()
			synctest.Wait() // one after the other: each sees those before it
		}
		perPartition := map[int32]int{}
		for _, id := range w.nodes["n0"].polls {
			perPartition[id.Number]++
		}
		for n := range int32(4) {
			if perPartition[n] != 3 {
				t.Errorf("polls by partition %v, want 3 each", perPartition)
				break
			}
		}
		cancel()
		synctest.Wait()
		if n := w.client.balancer.Outstanding(testQueue); n != 0 {
			t.Errorf("%d polls are outstanding after all came back", n)
		}
		if n := len(w.client.polls.byID); n != 0 {
			t.Errorf("%d polls are remembered after all came back", n)
		}
	})
}

func TestPollFollowsTheMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 2, Options{Ring: newFixedRing("n0")})
		if _, err := w.nodes["n1"].add(testQueue.Partition(0), []byte("there")); err != nil {
			t.Fatal(err)
		}
		e := task.Errorf(task.NotOwner, "moved")
		e.Owner = &task.Ownership{Holder: task.Holder{Address: "n1"}, Epoch: 3}
		w.nodes["n0"].before = once("PollTask", 1, e)
		if got := pollTokens(t, w.client, 1); len(got) != 1 || string(got[0].GetPayload()) != "there" {
			t.Errorf("the poll brought %v", got)
		}
		out := &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_MOVED, MovedTo: wire.EncodeOwnership(*e.Owner)}
		if owner := failureOwner(movedError(out)); owner == nil || owner.Holder.Address != "n1" {
			t.Errorf("an empty poll that moved leads to %+v", owner)
		}
	})
}

func failureOwner(err error) *task.Ownership {
	var e *task.Error
	errors.As(err, &e)
	return e.Owner
}

func TestCancelPollFindsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Queues: numbered(4)})
		reasons := make(chan matchingpb.EmptyReason, 2)
		poll := func(c *Client, id string) {
			out, _ := c.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), PollId: id})
			reasons <- out.GetEmptyReason()
		}
		go poll(w.client, "mine")
		synctest.Wait()
		in := &matchingpb.CancelPollRequest{TaskQueue: wire.EncodeQueue(testQueue), PollId: "mine"}
		if out, err := w.client.CancelPoll(t.Context(), in); err != nil || !out.GetFound() {
			t.Fatalf("cancelling an own poll: %v, %v", out, err)
		}
		if n := w.nodes["n0"].count("CancelPoll"); n != 1 {
			t.Errorf("it took %d calls, want 1", n)
		}
		w.nodes["n0"].polls["other"] = testQueue.Partition(2) // as if another frontend had sent it
		in.PollId = "other"
		if out, err := w.client.CancelPoll(t.Context(), in); err != nil || !out.GetFound() {
			t.Fatalf("cancelling another one's poll: %v, %v", out, err)
		}
		if got := <-reasons; got != matchingpb.EmptyReason_EMPTY_REASON_CANCELLED {
			t.Errorf("the poll ended with %v", got)
		}
	})
}

func TestLongPollIsCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		began := time.Now()
		var left time.Duration
		w.nodes["n0"].before = func(ctx context.Context, _ string, _ partition.ID) error {
			d, _ := ctx.Deadline()
			left = d.Sub(began)
			return nil
		}
		_, err := w.client.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(testQueue), Wait: durationpb.New(time.Second)})
		if err != nil || left != DefaultLongPollTimeout {
			t.Errorf("a poll without a deadline got %v (%v), want %v", left, err, DefaultLongPollTimeout)
		}
		began = time.Now()
		mustAdd(t, w.client, "x")
		if left != DefaultTimeout {
			t.Errorf("an add without a deadline got %v, want %v", left, DefaultTimeout)
		}
	})
}

func TestDirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here := newFakeNode("here")
		here.counts = counts(2, 1)
		c, err := NewClient(Options{Addresses: []string{"here"}, Direct: func(address string) matchingpb.MatchingServiceServer {
			if address == "here" {
				return here
			}
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Stop()
		mustAdd(t, c, "x")
		if got := c.countsOf(testQueue); got.Read != 2 {
			t.Errorf("counts from the trailer of a direct call: %+v", got)
		}
		here.before = once("AddTask", 1, task.Errorf(task.Paused, "not now"))
		if _, err := c.AddTask(t.Context(), addRequest("y")); status.Code(err) != codes.FailedPrecondition {
			t.Errorf("a direct error came out as %v", err)
		}
		if n := c.pool.Len(); n != 0 {
			t.Errorf("%d connections were opened", n)
		}
	})
}
