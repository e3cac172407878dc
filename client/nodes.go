package client

import (
	"context"

	"google.golang.org/grpc"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// anyNode asks the nodes one after the other until one answers, for what every
// node can tell. A request that one refuses the others would refuse too.
func anyNode[Req, Resp any](ctx context.Context, c *Client, m method[Req, Resp], in *Req, opts []grpc.CallOption) (*Resp, error) {
	ctx, cancel := bounded(ctx, c.settings().Timeout)
	defer cancel()
	var err error = task.Errorf(task.NotReady, "%s: %w", m.name(), ErrNoNodes)
	if waitFor(ctx, c.ring.Complete()) != nil {
		err = task.Errorf(task.NotReady, "%s: %w", m.name(), ErrNoView)
	}
	for _, address := range c.addresses() {
		var out *Resp
		out, err = m.call(ctx, c.node(address), in, &sent{options: opts})
		if err == nil {
			return out, nil
		}
		if answered(err) && failureOf(err).Reason == task.Invalid {
			break
		}
	}
	return nil, answer(err)
}

// DescribeNode describes the first node that answers: with several, use a client
// of one to ask that one.
func (c *Client) DescribeNode(ctx context.Context, in *matchingpb.DescribeNodeRequest, opts ...grpc.CallOption) (*matchingpb.DescribeNodeResponse, error) {
	return anyNode(ctx, c, of(matchingpb.MatchingService_DescribeNode_FullMethodName, matchingpb.MatchingServiceServer.DescribeNode), in, opts)
}

// GetSettings lists the dynamic settings of the first node that answers.
func (c *Client) GetSettings(ctx context.Context, in *matchingpb.GetSettingsRequest, opts ...grpc.CallOption) (*matchingpb.GetSettingsResponse, error) {
	return anyNode(ctx, c, of(matchingpb.MatchingService_GetSettings_FullMethodName, matchingpb.MatchingServiceServer.GetSettings), in, opts)
}

// ExplainSetting explains a dynamic setting of the first node that answers.
func (c *Client) ExplainSetting(ctx context.Context, in *matchingpb.ExplainSettingRequest, opts ...grpc.CallOption) (*matchingpb.ExplainSettingResponse, error) {
	return anyNode(ctx, c, of(matchingpb.MatchingService_ExplainSetting_FullMethodName, matchingpb.MatchingServiceServer.ExplainSetting), in, opts)
}
