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
	// Retries are calls made again.
	Retries int64
}

// metrics counts for Stats and, when there is a meter, for OTel.
type metrics struct {
	calls, jointCalls, jointItems, retries atomic.Int64

	enabled  bool
	otelCall metric.Int64Counter
	otelRe   metric.Int64Counter
	otelSize metric.Int64Histogram
}

func newMetrics(meter metric.Meter) (*metrics, error) {
	m := &metrics{enabled: meter != nil}
	if meter == nil {
		meter = noop.Meter{}
	}
	var errs [3]error
	m.otelCall, errs[0] = meter.Int64Counter("taskring.client.calls",
		metric.WithDescription("Calls to nodes, tries that failed included; a joint call counts once"))
	m.otelRe, errs[1] = meter.Int64Counter("taskring.client.retries",
		metric.WithDescription("Calls made again, by what was done about the failure"))
	m.otelSize, errs[2] = meter.Int64Histogram("taskring.client.batch.items",
		metric.WithDescription("Items of joint calls"), metric.WithExplicitBucketBoundaries(2, 4, 8, 16, 32, 64, 128, 256, 512, 1024))
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("making metrics: %w", err)
	}
	return m, nil
}

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
	if m.enabled {
		m.otelRe.Add(context.Background(), 1, metric.WithAttributes(attribute.String("action", action.String())))
	}
}

// Stats returns the client's figures so far.
func (c *Client) Stats() Stats {
	m := c.metrics
	return Stats{Calls: m.calls.Load(), JointCalls: m.jointCalls.Load(), JointItems: m.jointItems.Load(), Retries: m.retries.Load()}
}
