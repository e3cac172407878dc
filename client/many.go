package client

import (
	"context"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
)

// CompleteTasks ends many tasks, each batch and token at the owner of its
// partition.
func (c *Client) CompleteTasks(ctx context.Context, in *matchingpb.CompleteTasksRequest, opts ...grpc.CallOption) (*matchingpb.CompleteTasksResponse, error) {
	type result = matchingpb.CompleteResult
	call := refsCall[*result]{
		kind: retry.Repeatable,
		sender: partSender[*matchingpb.GrantRefs, *result]{
			send: func(ctx context.Context, n *node, batches []*matchingpb.GrantRefs) ([]*result, error) {
				out, err := completeTasks().call(ctx, n, &matchingpb.CompleteTasksRequest{Batches: batches}, &sent{options: opts})
				return out.GetResults(), err
			},
			whole: (*result).GetError,
		},
		refused: func(e *matchingpb.ItemError) *result { return &result{Error: e} },
		merge: func(into *result, p *part[*matchingpb.GrantRefs, *result]) {
			into.Errors = byIndex(place(into.GetErrors(), p.at, p.err, p.result.GetErrors()))
			into.AlreadyFinished = placeIndexes(into.GetAlreadyFinished(), p.at, p.result.GetAlreadyFinished())
		},
		bad: func(into *result, e *matchingpb.ItemError) { into.Errors = append(into.Errors, e) },
	}
	results, byToken := settleMany(ctx, c, call, refsOf{in.GetBatches(), in.GetTokens()})
	return &matchingpb.CompleteTasksResponse{Seq: in.GetSeq(), Results: results, Tokens: byToken}, nil
}

// ReleaseTasks gives many tasks back unworked.
func (c *Client) ReleaseTasks(ctx context.Context, in *matchingpb.ReleaseTasksRequest, opts ...grpc.CallOption) (*matchingpb.ReleaseTasksResponse, error) {
	type result = matchingpb.ReleaseResult
	call := refsCall[*result]{
		kind: retry.Once,
		sender: partSender[*matchingpb.GrantRefs, *result]{
			send: func(ctx context.Context, n *node, batches []*matchingpb.GrantRefs) ([]*result, error) {
				m := of(matchingpb.MatchingService_ReleaseTasks_FullMethodName, matchingpb.MatchingServiceServer.ReleaseTasks)
				out, err := m.call(ctx, n, &matchingpb.ReleaseTasksRequest{Batches: batches}, &sent{options: opts})
				return out.GetResults(), err
			},
			whole: (*result).GetError,
		},
		refused: func(e *matchingpb.ItemError) *result { return &result{Error: e} },
		merge: func(into *result, p *part[*matchingpb.GrantRefs, *result]) {
			into.Errors = byIndex(place(into.GetErrors(), p.at, p.err, p.result.GetErrors()))
		},
		bad: func(into *result, e *matchingpb.ItemError) { into.Errors = append(into.Errors, e) },
	}
	results, byToken := settleMany(ctx, c, call, refsOf{in.GetBatches(), in.GetTokens()})
	return &matchingpb.ReleaseTasksResponse{Seq: in.GetSeq(), Results: results, Tokens: byToken}, nil
}

// HeartbeatTasks extends many leases.
func (c *Client) HeartbeatTasks(ctx context.Context, in *matchingpb.HeartbeatTasksRequest, opts ...grpc.CallOption) (*matchingpb.HeartbeatTasksResponse, error) {
	type result = matchingpb.HeartbeatResult
	call := refsCall[*result]{
		kind: retry.Repeatable,
		sender: partSender[*matchingpb.GrantRefs, *result]{
			send: func(ctx context.Context, n *node, batches []*matchingpb.GrantRefs) ([]*result, error) {
				out, err := heartbeatTasks().call(ctx, n, &matchingpb.HeartbeatTasksRequest{Batches: batches}, &sent{options: opts})
				return out.GetResults(), err
			},
			whole: (*result).GetError,
		},
		refused: func(e *matchingpb.ItemError) *result { return &result{Error: e} },
		merge:   mergeHeartbeats,
		bad:     func(into *result, e *matchingpb.ItemError) { into.Errors = append(into.Errors, e) },
	}
	results, byToken := settleMany(ctx, c, call, refsOf{in.GetBatches(), in.GetTokens()})
	return &matchingpb.HeartbeatTasksResponse{Seq: in.GetSeq(), Results: results, Tokens: byToken}, nil
}

// mergeHeartbeats gives every token whose lease duration differs from the first
// one's an exception.
func mergeHeartbeats(into *matchingpb.HeartbeatResult, p *part[*matchingpb.GrantRefs, *matchingpb.HeartbeatResult]) {
	into.Errors = byIndex(place(into.GetErrors(), p.at, p.err, p.result.GetErrors()))
	into.Cancelled = placeIndexes(into.GetCancelled(), p.at, p.result.GetCancelled())
	if p.err != nil {
		return
	}
	if into.GetLeaseDuration() == nil {
		into.LeaseDuration = p.result.GetLeaseDuration()
	}
	for i, at := range p.at {
		if lease := leaseOf(p.result, i); lease.AsDuration() != into.GetLeaseDuration().AsDuration() {
			into.Exceptions = append(into.Exceptions, &matchingpb.ItemLease{Index: uint32(at), LeaseDuration: lease})
		}
	}
}
