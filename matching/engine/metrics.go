package engine

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// instruments measure the coming and going of partitions.
type instruments struct {
	loads    metric.Float64Histogram
	unloads  metric.Int64Counter
	byResult map[bool]metric.MeasurementOption
	byWhy    [len(whyNames)]metric.MeasurementOption
	observer metric.Registration
}

func newInstruments(m metric.Meter, e *Engine) (*instruments, error) {
	var in instruments
	var errs [4]error
	in.loads, errs[0] = m.Float64Histogram("taskring.partition.load.duration", metric.WithUnit("s"),
		metric.WithDescription("How long partitions took to load, by result."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10))
	in.unloads, errs[1] = m.Int64Counter("taskring.partition.unloads", metric.WithUnit("{partition}"),
		metric.WithDescription("Partitions unloaded, by reason."))
	loaded, err := m.Int64ObservableGauge("taskring.partitions.loaded", metric.WithUnit("{partition}"),
		metric.WithDescription("Partitions loaded on this node."))
	errs[2] = err
	in.observer, errs[3] = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		o.ObserveInt64(loaded, int64(e.table.count()))
		return nil
	}, loaded)
	in.byResult = map[bool]metric.MeasurementOption{
		true:  metric.WithAttributeSet(attribute.NewSet(attribute.String("result", "loaded"))),
		false: metric.WithAttributeSet(attribute.NewSet(attribute.String("result", "failed"))),
	}
	for w := range in.byWhy {
		in.byWhy[w] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", Why(w).String())))
	}
	return &in, errors.Join(errs[:]...)
}

func (in *instruments) loaded(took time.Duration, err error) {
	in.loads.Record(context.Background(), took.Seconds(), in.byResult[err == nil])
}

func (in *instruments) unloaded(why Why) {
	in.unloads.Add(context.Background(), 1, in.byWhy[why])
}

func (in *instruments) close() {
	if in.observer != nil {
		_ = in.observer.Unregister() // only fails for a provider that is gone already
	}
}
