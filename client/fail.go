package client

import (
	"cmp"
	"context"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// failPart is what a FailTasks has for one partition.
type failPart = part[*matchingpb.FailBatch, *matchingpb.FailResult]

// FailTasks gives many tasks back as failed.
func (c *Client) FailTasks(ctx context.Context, in *matchingpb.FailTasksRequest, opts ...grpc.CallOption) (*matchingpb.FailTasksResponse, error) {
	ctx, cancel := bounded(ctx, c.settings().Timeout)
	defer cancel()
	out := &matchingpb.FailTasksResponse{Seq: in.GetSeq(), Results: make([]*matchingpb.FailResult, len(in.GetBatches()))}
	var parts []*failPart
	var owner []int
	for i, b := range in.GetBatches() {
		id, err := wire.DecodePartition("grants.partition", b.GetGrants().GetPartition())
		if err != nil {
			out.Results[i] = &matchingpb.FailResult{Error: itemError(0, err)}
			continue
		}
		parts = append(parts, &failPart{trip: &trip{client: c, kind: retry.Once, id: id}, batch: b})
		owner = append(owner, i)
	}
	if n := len(in.GetByToken()); n > 0 {
		out.ByToken = &matchingpb.FailResult{NextAttemptUs: make([]int64, n)}
		parts = append(parts, c.failTokens(in.GetByToken(), out.GetByToken())...)
	}
	deliver(ctx, c, failSender(opts), parts)
	for i, p := range parts {
		switch {
		case p.at != nil:
			mergeFailures(out.GetByToken(), p)
		case p.err != nil:
			out.Results[owner[i]] = &matchingpb.FailResult{Error: itemError(0, p.err)}
		default:
			out.Results[owner[i]] = p.result
		}
	}
	return out, nil
}

func failSender(opts []grpc.CallOption) partSender[*matchingpb.FailBatch, *matchingpb.FailResult] {
	return partSender[*matchingpb.FailBatch, *matchingpb.FailResult]{
		send: func(ctx context.Context, n *node, batches []*matchingpb.FailBatch) ([]*matchingpb.FailResult, error) {
			m := of(matchingpb.MatchingService_FailTasks_FullMethodName, matchingpb.MatchingServiceServer.FailTasks)
			out, err := m.call(ctx, n, &matchingpb.FailTasksRequest{Batches: batches}, &sent{options: opts})
			return out.GetResults(), err
		},
		whole: (*matchingpb.FailResult).GetError,
	}
}

// failTokens sorts failures by token into parts. Tokens that cannot be read get
// their error.
func (c *Client) failTokens(list []*matchingpb.FailTaskRequest, into *matchingpb.FailResult) []*failPart {
	var read []task.Token
	var at []int
	for i, f := range list {
		token, err := wire.ParseToken(f.GetToken())
		if err != nil {
			into.Errors = append(into.Errors, itemError(i, err))
			continue
		}
		read, at = append(read, token), append(at, i)
	}
	groups := groupTokens(len(read), func(i int) task.Token { return read[i] })
	parts := make([]*failPart, len(groups))
	for i, g := range groups {
		p := &failPart{trip: &trip{client: c, kind: retry.Once, id: g.refs.Partition}, at: make([]int, len(g.at))}
		p.batch = &matchingpb.FailBatch{Grants: g.refs.Encode(), Common: list[at[g.at[0]]].GetFailure()}
		for j, k := range g.at {
			p.at[j] = at[k]
			if f := list[at[k]].GetFailure(); !proto.Equal(f, p.batch.GetCommon()) {
				p.batch.Exceptions = append(p.batch.Exceptions, &matchingpb.ItemFailure{Index: uint32(j), Failure: f})
			}
		}
		parts[i] = p
	}
	return parts
}

func mergeFailures(into *matchingpb.FailResult, p *failPart) {
	into.Errors = byIndex(place(into.GetErrors(), p.at, p.err, p.result.GetErrors()))
	into.Dead = placeIndexes(into.GetDead(), p.at, p.result.GetDead())
	slices.SortFunc(into.GetDead(), cmp.Compare[uint32])
	for i, us := range p.result.GetNextAttemptUs() {
		if p.err == nil && i < len(p.at) {
			into.NextAttemptUs[p.at[i]] = us
		}
	}
}
