package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// MetricOptions of [NewMetricClient].
type MetricOptions struct {
	// Meter makes the histogram. Required.
	Meter metric.Meter
	// Queues adds namespace and queue to what is measured. Each queue is then a
	// series of its own: leave it off where there are thousands.
	Queues bool
}

// NewMetricClient returns a client that measures how calls look to their callers:
// taskring.client.duration, a histogram of seconds with the attributes method and
// code, and reason for errors. What happens on the way, such as retries, [Client]
// measures itself. Streams are not measured.
func NewMetricClient(of matchingpb.MatchingServiceClient, o MetricOptions) (matchingpb.MatchingServiceClient, error) {
	if o.Meter == nil {
		return nil, errors.New("creating a metric client: MetricOptions.Meter is missing")
	}
	duration, err := o.Meter.Float64Histogram("taskring.client.duration", metric.WithUnit("s"),
		metric.WithDescription("How long calls take, for their callers"),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300))
	if err != nil {
		return nil, fmt.Errorf("creating a metric client: %w", err)
	}
	return &wrapped{of, func(ctx context.Context, method string, request any, call try) error {
		began := time.Now()
		err := call(ctx)
		attributes := []attribute.KeyValue{attribute.String("method", method), attribute.String("code", status.Code(err).String())}
		if err != nil {
			attributes = append(attributes, attribute.String("reason", task.ReasonOf(wire.FromStatus(err)).String()))
		}
		if named, ok := request.(namesQueue); ok && o.Queues {
			q := named.GetTaskQueue()
			attributes = append(attributes, attribute.String("namespace", q.GetNamespace()), attribute.String("queue", q.GetName()))
		}
		duration.Record(ctx, time.Since(began).Seconds(), metric.WithAttributes(attributes...))
		return err
	}}, nil
}

// namesQueue is a request about one queue.
type namesQueue interface {
	GetTaskQueue() *matchingpb.TaskQueuePartition
}
