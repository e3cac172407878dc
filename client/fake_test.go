package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// fakeNode is a matching node in memory: it keeps the service's promises as
// far as a client can see them, but for leases that end by themselves. It holds
// every partition that it is asked for.
type fakeNode struct {
	matchingpb.UnimplementedMatchingServiceServer

	address string

	mu        sync.Mutex
	changed   chan struct{} // closed and replaced when tasks come or polls are cancelled
	tasks     map[partition.ID][]*fakeTask
	lastID    uint64
	calls     []string // methods, in the order of their coming
	sizes     []int    // items of batched calls
	cancelled map[string]bool
	polls     map[string]partition.ID
	beats     map[task.ID]int
	failures  []*matchingpb.Failure
	counts    PartitionCounts
	lease     time.Duration

	// before is called at the start of every call, or of every batch of one,
	// without locks; an error is the answer.
	before func(ctx context.Context, method string, id partition.ID) error
	// refuse decides on single items, by payload.
	refuse func(payload string) error
	// heard answers a heartbeat for a task in place of the fake.
	heard func(id task.ID) error
}

type fakeTask struct {
	id       task.ID
	payload  []byte
	delivery uint32
	attempt  uint32
	state    string // ready, leased, done, dead
}

func newFakeNode(address string) *fakeNode {
	return &fakeNode{
		address: address, changed: make(chan struct{}), tasks: map[partition.ID][]*fakeTask{},
		cancelled: map[string]bool{}, polls: map[string]partition.ID{}, beats: map[task.ID]int{}, lease: 30 * time.Second,
	}
}

func idOf(q *matchingpb.TaskQueuePartition) partition.ID {
	id, err := wire.DecodePartition("task_queue", q)
	if err != nil {
		panic(fmt.Sprintf("the client sent a request to a node that names no partition: %v", err))
	}
	return id
}

func (f *fakeNode) AddTask(ctx context.Context, in *matchingpb.AddTaskRequest) (*matchingpb.AddTaskResponse, error) {
	id := idOf(in.GetTaskQueue())
	if err := f.begin(ctx, "AddTask", id); err != nil {
		return nil, err
	}
	made, err := f.add(id, in.GetPayload())
	return &matchingpb.AddTaskResponse{Id: made, Partition: id.Number}, wire.ToStatus(err)
}

func (f *fakeNode) AddTasks(ctx context.Context, in *matchingpb.AddTasksRequest) (*matchingpb.AddTasksResponse, error) {
	if err := f.begin(ctx, "AddTasks", partition.ID{}); err != nil {
		return nil, err
	}
	out, items := &matchingpb.AddTasksResponse{Seq: in.GetSeq()}, 0
	for _, b := range in.GetBatches() {
		id := idOf(b.GetTaskQueue())
		r := &matchingpb.AddResult{Partition: id.Number, Error: f.part(ctx, "AddBatch", id), Counts: f.reported()}
		out.Results = append(out.Results, r)
		items += len(b.GetPayloads())
		if r.GetError() != nil {
			continue
		}
		for i, payload := range b.GetPayloads() {
			made, err := f.add(id, payload)
			r.Ids = append(r.Ids, made)
			if err != nil {
				r.Errors = append(r.Errors, wire.ItemErrorOf(i, err))
			}
		}
	}
	f.mu.Lock()
	f.sizes = append(f.sizes, items)
	f.mu.Unlock()
	return out, nil
}

func (f *fakeNode) PollTask(ctx context.Context, in *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, error) {
	id := idOf(in.GetTaskQueue())
	if err := f.begin(ctx, "PollTask", id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.polls[in.GetPollId()] = id
	f.mu.Unlock()
	timeout := time.NewTimer(in.GetWait().AsDuration())
	if in.GetWait() == nil {
		timeout.Reset(time.Minute)
	}
	defer timeout.Stop()
	for {
		out, changed := f.grant(ctx, id, in)
		if out != nil {
			return out, nil
		}
		select {
		case <-changed:
		case <-timeout.C:
			return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT, Counts: f.reported()}, nil
		case <-ctx.Done():
			return nil, wire.ToStatus(ctx.Err())
		}
	}
}

func (f *fakeNode) CompleteTask(ctx context.Context, in *matchingpb.CompleteTaskRequest) (*matchingpb.CompleteTaskResponse, error) {
	token, err := wire.ParseToken(in.GetToken())
	if err != nil {
		return nil, wire.ToStatus(err)
	}
	if err := f.begin(ctx, "CompleteTask", token.Partition); err != nil {
		return nil, err
	}
	finished, err := f.settleGrant(token.Partition, token.Grant, "done")
	return &matchingpb.CompleteTaskResponse{AlreadyFinished: finished}, wire.ToStatus(err)
}

func (f *fakeNode) CompleteTasks(ctx context.Context, in *matchingpb.CompleteTasksRequest) (*matchingpb.CompleteTasksResponse, error) {
	if err := f.begin(ctx, "CompleteTasks", partition.ID{}); err != nil {
		return nil, err
	}
	out := &matchingpb.CompleteTasksResponse{Seq: in.GetSeq()}
	for _, b := range in.GetBatches() {
		r := &matchingpb.CompleteResult{Error: f.part(ctx, "CompleteBatch", idOf(b.GetPartition()))}
		out.Results = append(out.Results, r)
		if r.GetError() != nil {
			continue
		}
		f.eachGrant(b, func(i int, id partition.ID, g task.Grant) {
			finished, err := f.settleGrant(id, g, "done")
			if err != nil {
				r.Errors = append(r.Errors, wire.ItemErrorOf(i, err))
			} else if finished {
				r.AlreadyFinished = append(r.AlreadyFinished, uint32(i))
			}
		})
	}
	return out, nil
}

func (f *fakeNode) FailTask(ctx context.Context, in *matchingpb.FailTaskRequest) (*matchingpb.FailTaskResponse, error) {
	token, err := wire.ParseToken(in.GetToken())
	if err != nil {
		return nil, wire.ToStatus(err)
	}
	if err := f.begin(ctx, "FailTask", token.Partition); err != nil {
		return nil, err
	}
	_, err = f.settleGrant(token.Partition, token.Grant, "dead")
	f.mu.Lock()
	f.failures = append(f.failures, in.GetFailure())
	f.mu.Unlock()
	return &matchingpb.FailTaskResponse{Dead: true}, wire.ToStatus(err)
}

func (f *fakeNode) FailTasks(ctx context.Context, in *matchingpb.FailTasksRequest) (*matchingpb.FailTasksResponse, error) {
	if err := f.begin(ctx, "FailTasks", partition.ID{}); err != nil {
		return nil, err
	}
	out := &matchingpb.FailTasksResponse{Seq: in.GetSeq()}
	for _, b := range in.GetBatches() {
		r := &matchingpb.FailResult{NextAttemptUs: make([]int64, len(b.GetGrants().GetIds()))}
		out.Results = append(out.Results, r)
		exceptions := map[uint32]*matchingpb.Failure{}
		for _, e := range b.GetExceptions() {
			exceptions[e.GetIndex()] = e.GetFailure()
		}
		f.eachGrant(b.GetGrants(), func(i int, id partition.ID, g task.Grant) {
			if _, err := f.settleGrant(id, g, "dead"); err != nil {
				r.Errors = append(r.Errors, wire.ItemErrorOf(i, err))
				return
			}
			r.Dead = append(r.Dead, uint32(i))
			failure, ok := exceptions[uint32(i)]
			if !ok {
				failure = b.GetCommon()
			}
			f.mu.Lock()
			f.failures = append(f.failures, failure)
			f.mu.Unlock()
		})
	}
	return out, nil
}

func (f *fakeNode) ReleaseTask(ctx context.Context, in *matchingpb.ReleaseTaskRequest) (*matchingpb.ReleaseTaskResponse, error) {
	token, err := wire.ParseToken(in.GetToken())
	if err != nil {
		return nil, wire.ToStatus(err)
	}
	if err := f.begin(ctx, "ReleaseTask", token.Partition); err != nil {
		return nil, err
	}
	_, err = f.settleGrant(token.Partition, token.Grant, "ready")
	return &matchingpb.ReleaseTaskResponse{}, wire.ToStatus(err)
}

func (f *fakeNode) ReleaseTasks(ctx context.Context, in *matchingpb.ReleaseTasksRequest) (*matchingpb.ReleaseTasksResponse, error) {
	if err := f.begin(ctx, "ReleaseTasks", partition.ID{}); err != nil {
		return nil, err
	}
	out := &matchingpb.ReleaseTasksResponse{Seq: in.GetSeq()}
	for _, b := range in.GetBatches() {
		r := &matchingpb.ReleaseResult{}
		out.Results = append(out.Results, r)
		f.eachGrant(b, func(i int, id partition.ID, g task.Grant) {
			if _, err := f.settleGrant(id, g, "ready"); err != nil {
				r.Errors = append(r.Errors, wire.ItemErrorOf(i, err))
			}
		})
	}
	return out, nil
}

func (f *fakeNode) HeartbeatTask(ctx context.Context, in *matchingpb.HeartbeatTaskRequest) (*matchingpb.HeartbeatTaskResponse, error) {
	token, err := wire.ParseToken(in.GetToken())
	if err != nil {
		return nil, wire.ToStatus(err)
	}
	if err := f.begin(ctx, "HeartbeatTask", token.Partition); err != nil {
		return nil, err
	}
	if err := f.hear(token.Grant.ID); err != nil {
		return nil, wire.ToStatus(err)
	}
	return &matchingpb.HeartbeatTaskResponse{LeaseDuration: durationpb.New(f.lease)}, nil
}

func (f *fakeNode) HeartbeatTasks(ctx context.Context, in *matchingpb.HeartbeatTasksRequest) (*matchingpb.HeartbeatTasksResponse, error) {
	if err := f.begin(ctx, "HeartbeatTasks", partition.ID{}); err != nil {
		return nil, err
	}
	out := &matchingpb.HeartbeatTasksResponse{Seq: in.GetSeq()}
	for _, b := range in.GetBatches() {
		r := &matchingpb.HeartbeatResult{LeaseDuration: durationpb.New(f.lease)}
		out.Results = append(out.Results, r)
		f.eachGrant(b, func(i int, _ partition.ID, g task.Grant) {
			switch err := f.hear(g.ID); {
			case errors.Is(err, task.Cancelled):
				r.Cancelled = append(r.Cancelled, uint32(i))
			case err != nil:
				r.Errors = append(r.Errors, wire.ItemErrorOf(i, err))
			}
		})
	}
	return out, nil
}

func (f *fakeNode) CancelPoll(ctx context.Context, in *matchingpb.CancelPollRequest) (*matchingpb.CancelPollResponse, error) {
	id := idOf(in.GetTaskQueue())
	if err := f.begin(ctx, "CancelPoll", id); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	at, found := f.polls[in.GetPollId()]
	if !found || at != id {
		return &matchingpb.CancelPollResponse{}, nil
	}
	f.cancelled[in.GetPollId()] = true
	f.notifyLocked()
	return &matchingpb.CancelPollResponse{Found: true}, nil
}

// begin notes a call and lets the test stop it.
func (f *fakeNode) begin(ctx context.Context, method string, id partition.ID) error {
	f.mu.Lock()
	f.calls = append(f.calls, method)
	before, counts := f.before, f.counts
	f.mu.Unlock()
	_ = counts.SetTrailer(ctx)
	if before == nil {
		return nil
	}
	return wire.ToStatus(before(ctx, method, id))
}

// part lets the test stop the part of a batch.
func (f *fakeNode) part(ctx context.Context, method string, id partition.ID) *matchingpb.ItemError {
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before == nil {
		return nil
	}
	if err := before(ctx, method, id); err != nil {
		return wire.ItemErrorOf(0, err)
	}
	return nil
}

func (f *fakeNode) count(method string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, m := range f.calls {
		if m == method {
			n++
		}
	}
	return n
}

func (f *fakeNode) seen() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

func (f *fakeNode) reported() *matchingpb.PartitionCounts {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts.Encode()
}

// states returns how many tasks are in each state.
func (f *fakeNode) states() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]int{}
	for _, list := range f.tasks {
		for _, t := range list {
			out[t.state]++
		}
	}
	return out
}

func (f *fakeNode) notifyLocked() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fakeNode) add(id partition.ID, payload []byte) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		if err := f.refuse(string(payload)); err != nil {
			return 0, err
		}
	}
	f.lastID++
	made := task.MakeID(1, f.lastID)
	f.tasks[id] = append(f.tasks[id], &fakeTask{id: made, payload: payload, attempt: 1, state: "ready"})
	f.notifyLocked()
	return uint64(made), nil
}

// grant returns an answer, or what to wait for.
func (f *fakeNode) grant(ctx context.Context, id partition.ID, in *matchingpb.PollTaskRequest) (*matchingpb.PollTaskResponse, chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancelled[in.GetPollId()] {
		return &matchingpb.PollTaskResponse{EmptyReason: matchingpb.EmptyReason_EMPTY_REASON_CANCELLED, Counts: f.counts.Encode()}, nil
	}
	var granted []wire.Granted
	for _, t := range f.tasks[id] {
		if t.state != "ready" || len(granted) == max(int(in.GetMaxTasks()), 1) || ctx.Err() != nil {
			continue
		}
		t.state = "leased"
		t.delivery++
		granted = append(granted, wire.Granted{
			Store: task.StoreID{1}, Partition: id, Attempt: t.attempt, Lease: f.lease,
			Grant: task.Grant{ID: t.id, Delivery: t.delivery, Epoch: 1},
			Task:  &task.Task{ID: t.id, Payload: t.payload, Priority: task.DefaultPriority, AddedAt: task.At(time.Now())},
		})
	}
	if len(granted) == 0 {
		return nil, f.changed
	}
	out := &matchingpb.PollTaskResponse{Counts: f.counts.Encode()}
	if in.GetFormat() == matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS {
		out.Batches = wire.EncodeColumns(granted)
	} else {
		out.Tasks = wire.EncodeTokens(granted)
	}
	return out, nil
}

// settleGrant moves a leased task to another state, under the rules of tokens.
func (f *fakeNode) settleGrant(id partition.ID, g task.Grant, state string) (finished bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.tasks[id] {
		switch {
		case t.id != g.ID:
		case t.state == "done":
			return true, nil
		case t.state != "leased" || t.delivery != g.Delivery:
			return false, task.Errorf(task.LeaseLost, "task %v is %s, delivery %d", t.id, t.state, t.delivery)
		default:
			t.state = state
			f.notifyLocked()
			return false, nil
		}
	}
	return true, nil
}

// eachGrant calls visit for every grant of refs.
func (f *fakeNode) eachGrant(m *matchingpb.GrantRefs, visit func(i int, id partition.ID, g task.Grant)) {
	r, err := wire.Decoder{Limits: wire.Limits{}.WithDefaults()}.Refs("batch", m)
	if err != nil {
		panic(fmt.Sprintf("the client sent refs that no node reads: %v", err))
	}
	for i := range r.Len() {
		visit(i, r.Partition, r.Grant(i))
	}
}

func (f *fakeNode) hear(id task.ID) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beats[id]++
	if f.heard != nil {
		return f.heard(id)
	}
	return nil
}
