package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// instruments measure the coming and going of partitions, and read the figures
// of those that are loaded when somebody collects them. Collecting loads nothing
// and keeps nothing loaded.
type instruments struct {
	loads    metric.Float64Histogram
	unloads  metric.Int64Counter
	byResult map[bool]metric.MeasurementOption
	byWhy    [whyCount]metric.MeasurementOption
	observer metric.Registration

	loaded  metric.Int64ObservableGauge
	backlog metric.Int64ObservableGauge
	oldest  metric.Float64ObservableGauge
	waiting metric.Int64ObservableGauge
	events  []eventCounter

	mu      sync.Mutex
	retired ledger.Counts // of partitions that were unloaded
}

// eventCounter is a figure that the ledgers count.
type eventCounter struct {
	counter metric.Int64ObservableCounter
	of      func(*ledger.Counts) *uint64
	highest uint64 // reported so far; see observeEvents
}

func newInstruments(m metric.Meter, e *Engine) (*instruments, error) {
	in := &instruments{byResult: map[bool]metric.MeasurementOption{
		true:  metric.WithAttributeSet(attribute.NewSet(attribute.String("result", "loaded"))),
		false: metric.WithAttributeSet(attribute.NewSet(attribute.String("result", "failed"))),
	}}
	for w := range in.byWhy {
		in.byWhy[w] = metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", Why(w).String())))
	}
	observed := make([]metric.Observable, 0, 16)
	err := errors.Join(in.makeDirect(m), in.makeGauges(m), in.makeEvents(m))
	if err != nil {
		return nil, err
	}
	observed = append(observed, in.loaded, in.backlog, in.oldest, in.waiting)
	for _, c := range in.events {
		observed = append(observed, c.counter)
	}
	in.observer, err = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		in.observe(o, e.table.all())
		return nil
	}, observed...)
	if err != nil {
		return nil, fmt.Errorf("registering the observer: %w", err)
	}
	return in, nil
}

func (in *instruments) makeDirect(m metric.Meter) error {
	var errs [2]error
	in.loads, errs[0] = m.Float64Histogram("taskring.partition.load.duration", metric.WithUnit("s"),
		metric.WithDescription("How long partitions took to load, by result."),
		metric.WithExplicitBucketBoundaries(0.0005, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10))
	in.unloads, errs[1] = m.Int64Counter("taskring.partition.unloads", metric.WithUnit("{partition}"),
		metric.WithDescription("Partitions unloaded, by reason."))
	return errors.Join(errs[:]...)
}

func (in *instruments) makeGauges(m metric.Meter) error {
	var errs [4]error
	in.loaded, errs[0] = m.Int64ObservableGauge("taskring.partitions.loaded", metric.WithUnit("{partition}"),
		metric.WithDescription("Partitions loaded on this node."))
	in.backlog, errs[1] = m.Int64ObservableGauge("taskring.backlog.tasks", metric.WithUnit("{task}"),
		metric.WithDescription("Tasks that are not finished, by queue and state, in partitions loaded on this node. Dead letters are counted up to 1,000 for each partition when it is loaded, and exactly from there on."))
	in.oldest, errs[2] = m.Float64ObservableGauge("taskring.backlog.age", metric.WithUnit("s"),
		metric.WithDescription("How long the oldest ready task of a queue has waited, in partitions loaded on this node."))
	in.waiting, errs[3] = m.Int64ObservableGauge("taskring.polls.waiting", metric.WithUnit("{poll}"),
		metric.WithDescription("Polls that wait for a task, by queue."))
	return errors.Join(errs[:]...)
}

func (in *instruments) makeEvents(m metric.Meter) error {
	kinds := []struct {
		name, what string
		of         func(*ledger.Counts) *uint64
	}{
		{"granted", "Hand-outs of tasks to workers.", func(c *ledger.Counts) *uint64 { return &c.Granted }},
		{"completed", "Tasks completed.", func(c *ledger.Counts) *uint64 { return &c.Completed }},
		{"elided", "Tasks completed before they were written, so that they never were.", func(c *ledger.Counts) *uint64 { return &c.Elided }},
		{"failed", "Tasks that workers gave back as failed.", func(c *ledger.Counts) *uint64 { return &c.Failed }},
		{"released", "Tasks given back without an attempt being counted.", func(c *ledger.Counts) *uint64 { return &c.Released }},
		{"leases_expired", "Leases whose worker was not heard of in time.", func(c *ledger.Counts) *uint64 { return &c.LeasesExpired }},
		{"expired", "Tasks that expired before they were handed out.", func(c *ledger.Counts) *uint64 { return &c.Expired }},
		{"dead", "Tasks that went to the dead letters.", func(c *ledger.Counts) *uint64 { return &c.Died }},
	}
	errs := make([]error, 0, len(kinds))
	for _, e := range kinds {
		counter, err := m.Int64ObservableCounter("taskring.tasks."+e.name, metric.WithUnit("{task}"), metric.WithDescription(e.what))
		in.events = append(in.events, eventCounter{counter: counter, of: e.of})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func (in *instruments) loadEnded(ctx context.Context, took time.Duration, err error) {
	in.loads.Record(ctx, took.Seconds(), in.byResult[err == nil])
}

// unloaded counts an unload and keeps the figures of what was unloaded.
func (in *instruments) unloaded(ctx context.Context, why Why, c ledger.Counts) {
	in.unloads.Add(ctx, 1, in.byWhy[why])
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, e := range in.events {
		*e.of(&in.retired) += *e.of(&c)
	}
}

// figures are those of a queue, over its loaded partitions.
type figures struct {
	ready, scheduled, leased, dead, polls int64
	oldest                                task.Micros
}

func (in *instruments) observe(o metric.Observer, loaded []*queue.Queue) {
	o.ObserveInt64(in.loaded, int64(len(loaded)))
	byQueue := map[partition.Queue]*figures{}
	counts := make([]ledger.Counts, 0, len(loaded))
	for _, q := range loaded {
		s := q.Describe()
		f := byQueue[q.Partition().Queue]
		if f == nil {
			f = &figures{}
			byQueue[q.Partition().Queue] = f
		}
		ready, delayed := s.Estimate()
		f.ready += ready
		f.scheduled += delayed
		f.leased += s.Leased
		f.dead += s.Dead
		f.polls += int64(s.WaitingPolls)
		if s.OldestReady != 0 && (f.oldest == 0 || s.OldestReady < f.oldest) {
			f.oldest = s.OldestReady
		}
		counts = append(counts, s.Counts)
	}
	now := task.At(time.Now())
	for q, f := range byQueue {
		in.observeQueue(o, q, f, now)
	}
	in.observeEvents(o, counts)
}

func (in *instruments) observeQueue(o metric.Observer, q partition.Queue, f *figures, now task.Micros) {
	labels := []attribute.KeyValue{
		attribute.String("namespace", q.Namespace), attribute.String("queue", q.Name), attribute.String("type", q.Type.String()),
	}
	set := metric.WithAttributes(labels...)
	state := func(s string) metric.MeasurementOption {
		return metric.WithAttributes(append(labels[:3:3], attribute.String("state", s))...)
	}
	o.ObserveInt64(in.backlog, f.ready, state("ready"))
	o.ObserveInt64(in.backlog, f.scheduled, state("scheduled"))
	o.ObserveInt64(in.backlog, f.leased, state("leased"))
	o.ObserveInt64(in.backlog, f.dead, state("dead"))
	o.ObserveInt64(in.waiting, f.polls, set)
	age := 0.0
	if f.oldest != 0 {
		age = max(now.Sub(f.oldest), 0).Seconds()
	}
	o.ObserveFloat64(in.oldest, age, set)
}

// observeEvents adds up what was counted. A partition that is closing right now
// is in neither sum, so a total may come out lower than before for a moment; a
// counter must not fall, so the highest one stands.
func (in *instruments) observeEvents(o metric.Observer, counts []ledger.Counts) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range in.events {
		e := &in.events[i]
		sum := *e.of(&in.retired)
		for j := range counts {
			sum += *e.of(&counts[j])
		}
		e.highest = max(e.highest, sum)
		o.ObserveInt64(e.counter, int64(e.highest))
	}
}

func (in *instruments) close() {
	if in.observer != nil {
		_ = in.observer.Unregister() // only fails for a provider that is gone already
	}
}
