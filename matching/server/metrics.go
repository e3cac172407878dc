package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// maxLabels bounds the label sets that are kept; further queues share one.
const maxLabels = 10_000

// instruments measure what is asked of the node and answered, by task queue.
type instruments struct {
	adds         metric.Int64Counter
	polls        metric.Int64Counter
	latency      metric.Float64Histogram
	undeliveries metric.Int64Counter

	mu     sync.RWMutex
	labels map[label]metric.MeasurementOption
}

// label is a queue and what became of a request.
type label struct {
	queue  partition.Queue
	result string
}

func newInstruments(m metric.Meter) (*instruments, error) {
	if m == nil {
		m = noop.NewMeterProvider().Meter("")
	}
	in := &instruments{labels: map[label]metric.MeasurementOption{}}
	var errs [4]error
	in.adds, errs[0] = m.Int64Counter("taskring.adds", metric.WithUnit("{task}"),
		metric.WithDescription("Tasks that were to be added, by queue and result: ok, or the reason of the error in lower case."))
	in.polls, errs[1] = m.Int64Counter("taskring.polls", metric.WithUnit("{poll}"),
		metric.WithDescription("Polls answered, by queue and result: tasks; why they were empty, such as timeout, cancelled, moved or shutdown; or the reason of the error in lower case."))
	in.latency, errs[2] = m.Float64Histogram("taskring.dispatch.latency", metric.WithUnit("s"),
		metric.WithDescription("From the time that a task could be handed out to its first hand-out, by queue and result: fresh from the add, or from the backlog. A sample of up to 8 tasks of each answer."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 3600))
	in.undeliveries, errs[3] = m.Int64Counter("taskring.grants.undelivered", metric.WithUnit("{grant}"),
		metric.WithDescription("Grants released at once because the reply to their poll had nowhere to go."))
	return in, errors.Join(errs[:]...)
}

// with returns the labels of a queue and a result.
func (in *instruments) with(q partition.Queue, result string) metric.MeasurementOption {
	key := label{q, result}
	in.mu.RLock()
	option, ok := in.labels[key]
	full := len(in.labels) >= maxLabels
	in.mu.RUnlock()
	if ok {
		return option
	}
	if full {
		key.queue = partition.Queue{Namespace: "(other)", Name: "(other)"}
	}
	option = metric.WithAttributeSet(attribute.NewSet(
		attribute.String("namespace", key.queue.Namespace),
		attribute.String("queue", key.queue.Name),
		attribute.String("type", key.queue.Type.String()),
		attribute.String("result", result),
	))
	if !full {
		in.mu.Lock()
		in.labels[key] = option
		in.mu.Unlock()
	}
	return option
}

func (in *instruments) added(ctx context.Context, q partition.Queue, err error) {
	if err == nil {
		in.addedMany(ctx, q, 1)
		return
	}
	in.adds.Add(ctx, 1, in.with(q, reasonLabel(err)))
}

func (in *instruments) addedMany(ctx context.Context, q partition.Queue, n int) {
	if n > 0 {
		in.adds.Add(ctx, int64(n), in.with(q, "ok"))
	}
}

func (in *instruments) polled(ctx context.Context, q partition.Queue, result string) {
	in.polls.Add(ctx, 1, in.with(q, result))
}

// maxSamples is how many tasks of one answer are measured at most. A record costs
// about a microsecond, a tenth of all that a task in a large batch does, and
// tasks of one answer waited about equally long.
const maxSamples = 8

// dispatched counts a poll that brought tasks, and measures how long a sample of
// them waited, evenly spread over the answer. Only a task's first hand-out counts.
func (in *instruments) dispatched(ctx context.Context, q partition.Queue, grants []queue.Granted) {
	in.polled(ctx, q, "tasks")
	now := task.At(time.Now())
	fresh, stored := in.with(q, "fresh"), in.with(q, "backlog")
	samples := min(len(grants), maxSamples)
	for i := range samples {
		g := &grants[i*len(grants)/samples]
		if g.Grant.Delivery != 1 {
			continue
		}
		source := stored
		if g.Fresh {
			source = fresh
		}
		ready := max(g.Task.AddedAt, g.Task.NotBefore)
		in.latency.Record(ctx, max(now.Sub(ready), 0).Seconds(), source)
	}
}

func (in *instruments) undelivered(ctx context.Context, n int) {
	in.undeliveries.Add(ctx, int64(n))
}
