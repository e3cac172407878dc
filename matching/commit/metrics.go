package commit

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
)

// instruments measure the lanes. The count of the duration is the number of
// commits; the sum of the records is what was written in all.
type instruments struct {
	duration  metric.Float64Histogram
	mutations metric.Int64Histogram
	records   metric.Int64Histogram
	outcomes  metric.Int64Counter
	byResult  [store.Unknown + 1]metric.MeasurementOption
}

func newInstruments(m metric.Meter) (*instruments, error) {
	if m == nil {
		m = noop.NewMeterProvider().Meter("")
	}
	var in instruments
	var errs [4]error
	sizes := metric.WithExplicitBucketBoundaries(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096)
	in.duration, errs[0] = m.Float64Histogram("taskring.commit.duration", metric.WithUnit("s"),
		metric.WithDescription("How long the store took for a commit of a lane."),
		metric.WithExplicitBucketBoundaries(0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5))
	in.mutations, errs[1] = m.Int64Histogram("taskring.commit.mutations", metric.WithUnit("{mutation}"), sizes,
		metric.WithDescription("Partitions whose changes one commit carried."))
	in.records, errs[2] = m.Int64Histogram("taskring.commit.records", metric.WithUnit("{record}"), sizes,
		metric.WithDescription("Records that one commit wrote or deleted."))
	in.outcomes, errs[3] = m.Int64Counter("taskring.commit.outcomes", metric.WithUnit("{mutation}"),
		metric.WithDescription("Mutations by how their commit ended."))
	for r := range in.byResult {
		in.byResult[r] = metric.WithAttributeSet(attribute.NewSet(attribute.String("result", store.Result(r).String())))
	}
	return &in, errors.Join(errs[:]...)
}

func (in *instruments) committed(ctx context.Context, took time.Duration, ms []*row.Mutation, outcomes []store.Outcome) {
	records := 0
	for _, m := range ms {
		records += m.Records()
	}
	var ended [store.Unknown + 1]int64
	for _, o := range outcomes {
		ended[min(o.Result, store.Unknown)]++
	}
	in.duration.Record(ctx, took.Seconds())
	in.mutations.Record(ctx, int64(len(ms)))
	in.records.Record(ctx, int64(records))
	for r, n := range ended {
		if n > 0 {
			in.outcomes.Add(ctx, n, in.byResult[r])
		}
	}
}
