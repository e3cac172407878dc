package client

import (
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// CompleteTask ends a task for good. Concurrent completions to one node travel
// together; options of the call keep it apart.
func (c *Client) CompleteTask(ctx context.Context, in *matchingpb.CompleteTaskRequest, opts ...grpc.CallOption) (*matchingpb.CompleteTaskResponse, error) {
	return settle(ctx, c, in.GetToken(), settling[matchingpb.CompleteTaskResponse]{"CompleteTask", func(ctx context.Context, n *node, t task.Token) (*matchingpb.CompleteTaskResponse, error) {
		return n.complete(ctx, t, opts)
	}})
}

// HeartbeatTask extends a lease to its whole duration again. Concurrent
// heartbeats to one node travel together; options of the call keep it apart.
func (c *Client) HeartbeatTask(ctx context.Context, in *matchingpb.HeartbeatTaskRequest, opts ...grpc.CallOption) (*matchingpb.HeartbeatTaskResponse, error) {
	return settle(ctx, c, in.GetToken(), settling[matchingpb.HeartbeatTaskResponse]{"HeartbeatTask", func(ctx context.Context, n *node, t task.Token) (*matchingpb.HeartbeatTaskResponse, error) {
		if !n.joins(len(opts), c.settings()) {
			return heartbeatTask().call(ctx, n, &matchingpb.HeartbeatTaskRequest{Token: t.Append(nil)}, &sent{options: opts})
		}
		l := n.enter(ctx)
		defer n.leave(l)
		return l.heartbeats.do(ctx, t, perItem)
	}})
}

// settle takes a call with a token to the owner of its partition.
func settle[Resp any](ctx context.Context, c *Client, token []byte, s settling[Resp]) (*Resp, error) {
	t, err := wire.ParseToken(token)
	if err != nil {
		return nil, answer(err)
	}
	ctx, span := c.span(ctx, s.method, t.Partition.Queue)
	out, err := settleToken(ctx, c, t, s.try)
	span.end(err)
	return out, answer(err)
}

// settling is a method that settles; try makes one try.
type settling[Resp any] struct {
	method string
	try    func(context.Context, *node, task.Token) (*Resp, error)
}

// settleToken is settle for those who have the token itself; its errors are
// those of the domain.
func settleToken[Resp any](ctx context.Context, c *Client, token task.Token, try func(context.Context, *node, task.Token) (*Resp, error)) (*Resp, error) {
	ctx = capped(ctx, c.settings().Timeout)
	t := &trip{client: c, kind: retry.Repeatable, id: token.Partition}
	for {
		n, err := t.node(ctx)
		if err == nil {
			var out *Resp
			out, err = try(ctx, n, token)
			if err == nil {
				return out, nil
			}
		}
		if err = t.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// complete makes one try, joined with others if it may be.
func (n *node) complete(ctx context.Context, t task.Token, opts []grpc.CallOption) (*matchingpb.CompleteTaskResponse, error) {
	if !n.joins(len(opts), n.client.settings()) {
		return completeTask().call(ctx, n, &matchingpb.CompleteTaskRequest{Token: t.Append(nil)}, &sent{options: opts})
	}
	l := n.enter(ctx)
	defer n.leave(l)
	return l.completes.do(ctx, t, perItem)
}

func completeTask() method[matchingpb.CompleteTaskRequest, matchingpb.CompleteTaskResponse] {
	return of(matchingpb.MatchingService_CompleteTask_FullMethodName, matchingpb.MatchingServiceServer.CompleteTask)
}

func heartbeatTask() method[matchingpb.HeartbeatTaskRequest, matchingpb.HeartbeatTaskResponse] {
	return of(matchingpb.MatchingService_HeartbeatTask_FullMethodName, matchingpb.MatchingServiceServer.HeartbeatTask)
}

func (n *node) completeAlone(ctx context.Context, t task.Token) (*matchingpb.CompleteTaskResponse, error) {
	return completeTask().call(ctx, n, &matchingpb.CompleteTaskRequest{Token: t.Append(nil)}, &sent{})
}

func (n *node) heartbeatAlone(ctx context.Context, t task.Token) (*matchingpb.HeartbeatTaskResponse, error) {
	return heartbeatTask().call(ctx, n, &matchingpb.HeartbeatTaskRequest{Token: t.Append(nil)}, &sent{})
}

// completeTogether makes one CompleteTasks of many completions.
func (n *node) completeTogether(ctx context.Context, batch []*waiter[task.Token, *matchingpb.CompleteTaskResponse]) {
	groups := groupTokens(len(batch), func(i int) task.Token { return batch[i].item })
	n.client.metrics.joint(ctx, "CompleteTasks", len(batch))
	out, err := completeTasks().call(ctx, n, &matchingpb.CompleteTasksRequest{Batches: encodeGroups(groups)}, &sent{})
	err = sameNumber(err, len(groups), len(out.GetResults()))
	for i, g := range groups {
		var r *matchingpb.CompleteResult
		if err == nil {
			r = out.GetResults()[i]
		}
		errs := itemErrors(len(g.at), r.GetError(), r.GetErrors())
		for j, at := range g.at {
			switch failed := errorAt(errs, j); {
			case err != nil:
				batch[at].settle(nil, err)
			case failed != nil:
				batch[at].settle(nil, failed)
			default:
				batch[at].settle(&matchingpb.CompleteTaskResponse{AlreadyFinished: contains(r.GetAlreadyFinished(), j)}, nil)
			}
		}
	}
}

// heartbeatTogether makes one HeartbeatTasks of many heartbeats.
func (n *node) heartbeatTogether(ctx context.Context, batch []*waiter[task.Token, *matchingpb.HeartbeatTaskResponse]) {
	groups := groupTokens(len(batch), func(i int) task.Token { return batch[i].item })
	n.client.metrics.joint(ctx, "HeartbeatTasks", len(batch))
	out, err := heartbeatTasks().call(ctx, n, &matchingpb.HeartbeatTasksRequest{Batches: encodeGroups(groups)}, &sent{})
	err = sameNumber(err, len(groups), len(out.GetResults()))
	for i, g := range groups {
		var r *matchingpb.HeartbeatResult
		if err == nil {
			r = out.GetResults()[i]
		}
		errs := itemErrors(len(g.at), r.GetError(), r.GetErrors())
		for j, at := range g.at {
			switch failed := errorAt(errs, j); {
			case err != nil:
				batch[at].settle(nil, err)
			case failed != nil:
				batch[at].settle(nil, failed)
			default:
				batch[at].settle(&matchingpb.HeartbeatTaskResponse{LeaseDuration: leaseOf(r, j), Cancelled: contains(r.GetCancelled(), j)}, nil)
			}
		}
	}
}

// leaseOf returns the lease duration of item i.
func leaseOf(r *matchingpb.HeartbeatResult, i int) *durationpb.Duration {
	for _, e := range r.GetExceptions() {
		if int(e.GetIndex()) == i {
			return e.GetLeaseDuration()
		}
	}
	return r.GetLeaseDuration()
}

func completeTasks() method[matchingpb.CompleteTasksRequest, matchingpb.CompleteTasksResponse] {
	return of(matchingpb.MatchingService_CompleteTasks_FullMethodName, matchingpb.MatchingServiceServer.CompleteTasks)
}

func heartbeatTasks() method[matchingpb.HeartbeatTasksRequest, matchingpb.HeartbeatTasksResponse] {
	return of(matchingpb.MatchingService_HeartbeatTasks_FullMethodName, matchingpb.MatchingServiceServer.HeartbeatTasks)
}

func encodeGroups(groups []*refsGroup) []*matchingpb.GrantRefs {
	out := make([]*matchingpb.GrantRefs, len(groups))
	for i, g := range groups {
		out[i] = g.refs.Encode()
	}
	return out
}

// sameNumber adds to the error of a batched call the one of an answer that does
// not fit its question.
func sameNumber(err error, batches, results int) error {
	if err == nil && batches != results {
		return task.Errorf(task.OutcomeUnknown, "%d batches were answered with %d results", batches, results)
	}
	return err
}

// FailTask gives a task back as failed. It is not repeated when its outcome is
// unknown: the failure may have been counted.
func (c *Client) FailTask(ctx context.Context, in *matchingpb.FailTaskRequest, opts ...grpc.CallOption) (*matchingpb.FailTaskResponse, error) {
	return byToken(ctx, tokenCall[matchingpb.FailTaskRequest, matchingpb.FailTaskResponse]{
		client: c, token: in.GetToken(), in: in, opts: opts, kind: retry.Once,
		method: of(matchingpb.MatchingService_FailTask_FullMethodName, matchingpb.MatchingServiceServer.FailTask),
	})
}

// ReleaseTask gives a task back unworked; no attempt is counted. A repeated
// release that finds the lease lost has most likely found its own doing, so it
// is not repeated when its outcome is unknown.
func (c *Client) ReleaseTask(ctx context.Context, in *matchingpb.ReleaseTaskRequest, opts ...grpc.CallOption) (*matchingpb.ReleaseTaskResponse, error) {
	return byToken(ctx, tokenCall[matchingpb.ReleaseTaskRequest, matchingpb.ReleaseTaskResponse]{
		client: c, token: in.GetToken(), in: in, opts: opts, kind: retry.Once,
		method: of(matchingpb.MatchingService_ReleaseTask_FullMethodName, matchingpb.MatchingServiceServer.ReleaseTask),
	})
}

// RespondDispatch answers a dispatched task.
func (c *Client) RespondDispatch(ctx context.Context, in *matchingpb.RespondDispatchRequest, opts ...grpc.CallOption) (*matchingpb.RespondDispatchResponse, error) {
	return byToken(ctx, tokenCall[matchingpb.RespondDispatchRequest, matchingpb.RespondDispatchResponse]{
		client: c, token: in.GetToken(), in: in, opts: opts, kind: retry.Once,
		method: of(matchingpb.MatchingService_RespondDispatch_FullMethodName, matchingpb.MatchingServiceServer.RespondDispatch),
	})
}

// tokenCall is a call that goes where its token says.
type tokenCall[Req, Resp any] struct {
	client *Client
	token  []byte
	in     *Req
	opts   []grpc.CallOption
	kind   retry.Kind
	method method[Req, Resp]
}

func byToken[Req, Resp any](ctx context.Context, call tokenCall[Req, Resp]) (*Resp, error) {
	token, err := wire.ParseToken(call.token)
	if err != nil {
		return nil, answer(err)
	}
	ctx, span := call.client.span(ctx, call.method.name(), token.Partition.Queue)
	ctx, cancel := bounded(ctx, call.client.settings().Timeout)
	defer cancel()
	t := &trip{client: call.client, kind: call.kind, id: token.Partition}
	out, err := visit(ctx, t, call.method, func(partition.ID) (*Req, []grpc.CallOption) { return call.in, slices.Clip(call.opts) })
	span.end(err)
	return out, answer(err)
}
