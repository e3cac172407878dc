package wire

import (
	"math"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// The range of fairness weights; 0 means 1.
const (
	MinFairnessWeight = 0.001
	MaxFairnessWeight = 1000
)

// options reads all that a producer says of a task but its payload into a task
// without an id. Bad options leave their task fields at the default.
func (d Decoder) options(f *Fields, path string, o *matchingpb.TaskOptions) task.Task {
	t := task.Task{
		Headers:        o.GetHeaders(),
		Priority:       f.priority(path+".priority", o.GetPriority(), task.DefaultPriority),
		FairnessKey:    o.GetFairnessKey(),
		FairnessWeight: f.fairnessWeight(path+".fairness_weight", o.GetFairnessWeight()),
		AddedAt:        d.Now,
		LeaseDuration:  f.lease(path+".lease_duration", o.GetLeaseDuration(), d.Limits),
		Durability:     f.durability(path+".durability", o.GetDurability()),
		RequestID:      o.GetRequestId(),
		Retry:          d.retry(f, path+".retry_policy", o.GetRetryPolicy()),
	}
	f.maxBytes(path+".headers", headerBytes(t.Headers), d.Limits.HeaderBytes, SettingHeaderBytes)
	for k, v := range t.Headers {
		f.utf8(path+".headers", k, v)
	}
	f.text(path+".fairness_key", t.FairnessKey, d.Limits.FairnessKeyBytes, SettingFairnessKeyBytes)
	f.text(path+".request_id", t.RequestID, d.Limits.RequestIDBytes, SettingRequestIDBytes)
	if n := o.GetMaxAttempts(); n < 0 {
		f.Addf(path+".max_attempts", "is %d, it must be at least 1, or 0 for the default", n)
	} else {
		t.MaxAttempts = uint32(n)
	}
	t.NotBefore = d.start(f, path, o)
	t.ExpiresAt = d.expiry(f, path+".expiry", o.GetExpiry(), t.NotBefore)
	return t
}

// priority reads a priority, 0 being the given default.
func (f *Fields) priority(field string, p int32, unset task.Priority) task.Priority {
	if p == 0 {
		return unset
	}
	if p < int32(task.MinPriority) || p > int32(task.MaxPriority) {
		f.Addf(field, "is %d, priorities run from %d (first) to %d; 0 means %d", p, task.MinPriority, task.MaxPriority, unset)
		return unset
	}
	return task.Priority(p)
}

func (f *Fields) fairnessWeight(field string, w float32) float32 {
	if w == 0 {
		return 1
	}
	if !(w >= MinFairnessWeight && w <= MaxFairnessWeight) { // also refuses NaN
		f.Addf(field, "is %v, it must be between %v and %v; 0 means 1", w, MinFairnessWeight, MaxFairnessWeight)
		return 1
	}
	return w
}

func (f *Fields) durability(field string, d matchingpb.Durability) task.Durability {
	switch d {
	case matchingpb.Durability_DURABILITY_UNSPECIFIED, matchingpb.Durability_DURABILITY_DURABLE:
		return task.Durable
	case matchingpb.Durability_DURABILITY_HAND_OFF:
		return task.HandOff
	default:
		f.Addf(field, "is %d, the contracts are 1 (durable) and 2 (hand-off)", d)
		return task.Durable
	}
}

// start returns the earliest hand-out, 0 for at once.
func (d Decoder) start(f *Fields, path string, o *matchingpb.TaskOptions) task.Micros {
	var at task.Micros
	var field string
	switch s := o.GetStart().(type) {
	case *matchingpb.TaskOptions_NotBefore:
		field = path + ".not_before"
		at = task.At(f.time(field, s.NotBefore))
	case *matchingpb.TaskOptions_Delay:
		field = path + ".delay"
		at = d.Now.Add(f.duration(field, s.Delay))
	}
	if at <= d.Now {
		return 0
	}
	if ahead := at - d.Now; ahead > task.Micros(d.Limits.Delay/time.Microsecond) {
		f.Addf(field, "is more than %v ahead, which is the limit (%s)", d.Limits.Delay, SettingDelay)
		return 0
	}
	return at
}

// expiry returns the last moment for a hand-out, 0 for none.
func (d Decoder) expiry(f *Fields, field string, e *durationpb.Duration, notBefore task.Micros) task.Micros {
	if e == nil {
		return 0
	}
	before := len(f.bad)
	v := f.duration(field, e)
	if len(f.bad) > before {
		return 0
	}
	if v < time.Microsecond {
		f.Addf(field, "is %v, it must be at least 1us; leave it unset for a task that never expires", v)
		return 0
	}
	at := d.Now.Add(v)
	if at <= notBefore {
		f.Addf(field, "ends at %s, before the task may be handed out at %s", rfc3339(at), rfc3339(notBefore))
		return 0
	}
	return at
}

func rfc3339(m task.Micros) string { return m.Time().Format(time.RFC3339Nano) }

func (d Decoder) retry(f *Fields, path string, p *matchingpb.RetryPolicy) task.RetryPolicy {
	if p == nil {
		return task.RetryPolicy{}
	}
	r := task.RetryPolicy{
		Initial: d.interval(f, path+".initial_interval", p.GetInitialInterval()),
		Max:     d.interval(f, path+".maximum_interval", p.GetMaximumInterval()),
		Factor:  p.GetBackoffCoefficient(),
		Jitter:  p.GetJitter(),
	}
	if r.Factor != 0 && !(r.Factor >= 1 && r.Factor <= math.MaxFloat64) {
		f.Addf(path+".backoff_coefficient", "is %v, it must be at least 1, or 0 for the default", r.Factor)
		r.Factor = 0
	}
	if !(r.Jitter >= 0 && r.Jitter <= 1) {
		f.Addf(path+".jitter", "is %v, it must be between 0 and 1", r.Jitter)
		r.Jitter = 0
	}
	if r.Max != 0 && r.Max < r.Initial {
		f.Addf(path+".maximum_interval", "is %v, it must not be below initial_interval, %v", r.Max, r.Initial)
	}
	return r
}

func (d Decoder) interval(f *Fields, field string, v *durationpb.Duration) time.Duration {
	i := f.duration(field, v)
	if i > d.Limits.Delay {
		f.Addf(field, "is %v, the limit is %v (%s)", i, d.Limits.Delay, SettingDelay)
		return 0
	}
	return i
}

func headerBytes(h map[string]string) int {
	n := 0
	for k, v := range h {
		n += len(k) + len(v)
	}
	return n
}

// EncodeOptions returns the options that a task was added with. A delay comes
// back as not_before, and what the producer left to a default as that default
// where the task says it.
func EncodeOptions(t *task.Task) *matchingpb.TaskOptions {
	o := &matchingpb.TaskOptions{
		Headers:        t.Headers,
		Priority:       int32(t.Priority),
		FairnessKey:    t.FairnessKey,
		FairnessWeight: t.FairnessWeight,
		MaxAttempts:    int32(min(t.MaxAttempts, math.MaxInt32)),
		RetryPolicy:    encodeRetry(t.Retry),
		LeaseDuration:  encodeDuration(t.LeaseDuration),
		Durability:     encodeDurability(t.Durability),
		RequestId:      t.RequestID,
	}
	if t.NotBefore != 0 {
		o.Start = &matchingpb.TaskOptions_NotBefore{NotBefore: EncodeTime(t.NotBefore)}
	}
	if t.ExpiresAt != 0 {
		o.Expiry = durationpb.New(t.ExpiresAt.Sub(t.AddedAt))
	}
	return o
}

func encodeRetry(r task.RetryPolicy) *matchingpb.RetryPolicy {
	if r == (task.RetryPolicy{}) {
		return nil
	}
	return &matchingpb.RetryPolicy{
		InitialInterval:    encodeDuration(r.Initial),
		BackoffCoefficient: r.Factor,
		MaximumInterval:    encodeDuration(r.Max),
		Jitter:             r.Jitter,
	}
}

func encodeDurability(d task.Durability) matchingpb.Durability {
	if d == task.HandOff {
		return matchingpb.Durability_DURABILITY_HAND_OFF
	}
	return matchingpb.Durability_DURABILITY_DURABLE
}

// encodeDuration returns nil for 0, which stands for a default everywhere.
func encodeDuration(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return durationpb.New(d)
}

// EncodeTime returns the message for m, nil for 0.
func EncodeTime(m task.Micros) *timestamppb.Timestamp {
	if m == 0 {
		return nil
	}
	return timestamppb.New(m.Time())
}
