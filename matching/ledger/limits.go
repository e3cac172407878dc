package ledger

import (
	"math"
	"time"

	"github.com/taskring/taskring/matching/task"
)

// Limits are the bounds and defaults that a ledger works with. Zero fields take
// the value of [DefaultLimits].
type Limits struct {
	ReadAheadItems int // ready tasks in memory per priority, before new ones are left to the store
	ReadAheadBytes int // ready tasks in memory, all priorities, by task.Size
	DelayedItems   int // delayed tasks in memory
	DelayedBytes   int // their bodies; beyond it only the store keeps bodies
	LeasedBytes    int // bodies of leased tasks, likewise
	MaxLeases      int // tasks with workers at one time
	PendingItems   int // accepted adds that the store does not have yet
	PendingBytes   int // likewise, by task.Size
	Lookups        int // operations that wait for a look into the store

	MutationItems int // entries per mutation
	MutationBytes int // bodies per mutation
	SweepRows     int // deleted task rows of a priority that are worth a range delete
	SweepSpan     int // ids that a range must span to be worth a record

	LeaseDuration time.Duration    // for tasks that do not say
	MaxAttempts   uint32           // for tasks that do not say
	MaxDeliveries uint32           // grants of one task, whatever became of them
	Retry         task.RetryPolicy // fills the zero fields of a task's own
}

// DefaultLimits returns the defaults.
func DefaultLimits() Limits {
	return Limits{
		ReadAheadItems: 4096, ReadAheadBytes: 8 << 20,
		DelayedItems: 4096, DelayedBytes: 4 << 20, LeasedBytes: 64 << 20,
		MaxLeases: 100_000, PendingItems: 50_000, PendingBytes: 64 << 20, Lookups: 10_000,
		MutationItems: 4096, MutationBytes: 8 << 20, SweepRows: 4096, SweepSpan: 64,
		LeaseDuration: 30 * time.Second, MaxAttempts: 25, MaxDeliveries: 1000,
		Retry: task.RetryPolicy{Initial: time.Second, Max: 10 * time.Minute, Factor: 2, Jitter: 0.2},
	}
}

// withDefaults fills the fields that are not set.
func (l Limits) withDefaults() Limits {
	d := DefaultLimits()
	for _, f := range []struct {
		field *int
		value int
	}{
		{&l.ReadAheadItems, d.ReadAheadItems}, {&l.ReadAheadBytes, d.ReadAheadBytes},
		{&l.DelayedItems, d.DelayedItems}, {&l.DelayedBytes, d.DelayedBytes}, {&l.LeasedBytes, d.LeasedBytes},
		{&l.MaxLeases, d.MaxLeases}, {&l.PendingItems, d.PendingItems}, {&l.PendingBytes, d.PendingBytes},
		{&l.Lookups, d.Lookups}, {&l.MutationItems, d.MutationItems}, {&l.MutationBytes, d.MutationBytes},
		{&l.SweepRows, d.SweepRows}, {&l.SweepSpan, d.SweepSpan},
	} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
	if l.LeaseDuration <= 0 {
		l.LeaseDuration = d.LeaseDuration
	}
	if l.MaxAttempts == 0 {
		l.MaxAttempts = d.MaxAttempts
	}
	if l.MaxDeliveries == 0 {
		l.MaxDeliveries = d.MaxDeliveries
	}
	l.Retry = retryOr(l.Retry, d.Retry)
	return l
}

// retryOr fills the zero fields of p from d.
func retryOr(p, d task.RetryPolicy) task.RetryPolicy {
	if p.Initial <= 0 {
		p.Initial = d.Initial
	}
	if p.Max <= 0 {
		p.Max = d.Max
	}
	if p.Factor < 1 {
		p.Factor = d.Factor
	}
	if p.Jitter <= 0 {
		p.Jitter = d.Jitter
	}
	return p
}

// backoff is the rest before the next attempt, after so many attempts.
func (l *Ledger) backoff(p task.RetryPolicy, attempts uint32) time.Duration {
	p = retryOr(p, l.limits.Retry)
	d := float64(p.Initial) * math.Pow(p.Factor, float64(attempts-1))
	d = min(d, float64(p.Max))
	d *= 1 + p.Jitter*(2*l.rand.Float64()-1)
	return time.Duration(min(d, float64(p.Max)))
}
