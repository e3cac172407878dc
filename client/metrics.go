package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/taskring/taskring/client/retry"
)

// Stats are figures of a client since it was made.
type Stats struct {
	// Calls to nodes, tries that failed included; a joint call counts once.
	Calls int64
	// JointCalls are those that carried several callers' items.
	JointCalls int64
	// JointItems are the items of these.
	JointItems int64
	// Retries are calls made again, for whatever reason.
	Retries int64
	// Reroutes are those of them that NOT_OWNER sent elsewhere.
	Reroutes int64
	// Recounts are those that STALE_PARTITION_COUNTS sent elsewhere.
	Recounts int64
	// OverBudget are calls that were not made again for want of budget.
	OverBudget int64
}

// metrics counts for Stats and, when there is a meter, for OTel.
type metrics struct {
	calls, jointCalls, jointItems, retries, reroutes, recounts, refused atomic.Int64

	enabled  bool
	otelCall metric.Int64Counter
	otelRe   metric.Int64Counter
	otelOver metric.Int64Counter
	otelPick metric.Int64Counter
	otelSize metric.Int64Histogram
	watch    metric.Registration
}

func newMetrics(meter metric.Meter, c *Client) (*metrics, error) {
	m := &metrics{enabled: meter != nil}
	if meter == nil {
		meter = noop.Meter{}
	}
	var errs [8]error
	m.otelCall, errs[0] = meter.Int64Counter("taskring.client.calls",
		metric.WithDescription("Calls to nodes, tries that failed included; a joint call counts once"))
	m.otelRe, errs[1] = meter.Int64Counter("taskring.client.retries",
		metric.WithDescription("Calls made again, by what was done about the failure: reroute after NOT_OWNER, recount after STALE_PARTITION_COUNTS, same, other"))
	m.otelOver, errs[2] = meter.Int64Counter("taskring.client.retries.refused",
		metric.WithDescription("Calls not made again because the budget of retries was used up"))
	m.otelSize, errs[3] = meter.Int64Histogram("taskring.client.batch.items",
		metric.WithDescription("Items of joint calls"), metric.WithExplicitBucketBoundaries(2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
	m.otelPick, errs[7] = meter.Int64Counter("taskring.client.picks",
		metric.WithDescription("Partitions picked for calls that name a whole queue, by access: read or write"))
	polls, err := meter.Int64ObservableGauge("taskring.client.polls.outstanding", metric.WithDescription("Polls that are out"))
	errs[4] = err
	cached, err := meter.Int64ObservableGauge("taskring.client.counts.cached", metric.WithDescription("Task queues whose partition counts are known from nodes"))
	errs[5] = err
	m.watch, errs[6] = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(polls, c.balancer.OutstandingAll())
		o.ObserveInt64(cached, int64(c.counts.len()))
		return nil
	}, polls, cached)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making metrics: %w", err)
	}
	return m, nil
}

// stop ends what is observed; it may be called twice.
func (m *metrics) stop() { _ = m.watch.Unregister() } // nothing is lost when it fails

func (m *metrics) call(ctx context.Context, method string) {
	m.calls.Add(1)
	if m.enabled {
		m.otelCall.Add(ctx, 1, metric.WithAttributes(attribute.String("method", method)))
	}
}

func (m *metrics) joint(ctx context.Context, method string, items int) {
	m.jointCalls.Add(1)
	m.jointItems.Add(int64(items))
	if m.enabled {
		m.otelSize.Record(ctx, int64(items), metric.WithAttributes(attribute.String("method", method)))
	}
}

func (m *metrics) retry(action retry.Action) {
	m.retries.Add(1)
	switch action {
	case retry.Reroute:
		m.reroutes.Add(1)
	case retry.Recount:
		m.recounts.Add(1)
	default:
	}
	if m.enabled {
		m.otelRe.Add(context.Background(), 1, metric.WithAttributes(attribute.String("action", action.String())))
	}
}

// pick counts a partition that was picked, to read or to write.
func (m *metrics) pick(access string) {
	if m.enabled {
		m.otelPick.Add(context.Background(), 1, metric.WithAttributes(attribute.String("access", access)))
	}
}

func (m *metrics) overBudget() {
	m.refused.Add(1)
	if m.enabled {
		m.otelOver.Add(context.Background(), 1)
	}
}

// Stats returns the client's figures so far.
func (c *Client) Stats() Stats {
	m := c.metrics
	return Stats{
		Calls: m.calls.Load(), JointCalls: m.jointCalls.Load(), JointItems: m.jointItems.Load(),
		Retries: m.retries.Load(), Reroutes: m.reroutes.Load(), Recounts: m.recounts.Load(), OverBudget: m.refused.Load(),
	}
}
