package wire

import (
	"math"
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// Decoder reads requests into the domain's values and refuses what is wrong
// with them. It may be used by any number of goroutines.
type Decoder struct {
	// Limits must be complete, see [Limits.WithDefaults].
	Limits Limits
	// Now is the time of the add by the store's clock; delays and expiries
	// count from it. Only adds need it.
	Now task.Micros
}

// AddTask reads an add. The task has no id yet.
func (d Decoder) AddTask(r *matchingpb.AddTaskRequest) (Target, *task.Task, error) {
	var f Fields
	target := f.stored("task_queue", r.GetTaskQueue())
	t := d.options(&f, "options", r.GetOptions())
	t.Payload = r.GetPayload()
	f.maxBytes("payload", len(t.Payload), d.Limits.PayloadBytes, SettingPayloadBytes)
	if err := f.Err(); err != nil {
		return Target{}, nil, err
	}
	return target, &t, nil
}

// AddBatch is a batch of adds, read.
type AddBatch struct {
	Target Target
	// Tasks has one entry per payload, nil where the item is refused.
	Tasks []*task.Task
	// Refused holds the errors of those, ascending by index.
	Refused []*matchingpb.ItemError
	// Counts are the caller's, the zero value when not known.
	Counts PartitionCounts
	// EstimatedTasks over all partitions that the batch stands for.
	EstimatedTasks int64
}

// AddBatch reads a batch of adds. The error refuses the whole batch: for its
// queue, its common options, its shape; a bad item is refused by itself.
func (d Decoder) AddBatch(b *matchingpb.AddBatch) (AddBatch, error) {
	var f Fields
	n := len(b.GetPayloads())
	out := AddBatch{
		Target:         f.stored("task_queue", b.GetTaskQueue()),
		Counts:         DecodePartitionCounts(b.GetCounts()),
		EstimatedTasks: max(b.GetEstimatedTasks(), 0),
	}
	if n > d.Limits.BatchItems {
		f.Addf("payloads", "has %d tasks, the limit is %d (%s)", n, d.Limits.BatchItems, SettingBatchItems)
	}
	common := d.options(&f, "common", b.GetCommon())
	if common.RequestID != "" && n > 1 {
		f.Addf("common.request_id", "names one task, but the batch has %d: put it in an exception", n)
	}
	checkIndexes(&f, "exceptions", b.GetExceptions(), n)
	if err := f.Err(); err != nil {
		return AddBatch{}, err
	}
	out.Tasks = make([]*task.Task, n)
	exceptions := b.GetExceptions()
	for i, payload := range b.GetPayloads() {
		t, err := common, error(nil)
		if len(exceptions) > 0 && exceptions[0].GetIndex() == uint32(i) {
			t, err = d.item(exceptions[0].GetOptions(), payload)
			exceptions = exceptions[1:]
		} else if len(payload) > d.Limits.PayloadBytes {
			_, err = d.item(nil, payload)
		}
		if err != nil {
			out.Refused = append(out.Refused, ItemErrorOf(i, err))
			continue
		}
		t.Payload = payload
		out.Tasks[i] = &t
	}
	return out, nil
}

// indexed is an entry of a sparse list.
type indexed interface{ GetIndex() uint32 }

// checkIndexes refuses a sparse list that is not ascending or points outside
// of its batch of n items.
func checkIndexes[T indexed](f *Fields, field string, list []T, n int) {
	for i, e := range list {
		at := field + "[" + strconv.Itoa(i) + "].index"
		if int64(e.GetIndex()) >= int64(n) {
			f.Addf(at, "is %d, the batch has %d items, numbered from 0", e.GetIndex(), n)
			return
		}
		if i > 0 && e.GetIndex() <= list[i-1].GetIndex() {
			f.Addf(at, "is %d after %d, indexes must ascend", e.GetIndex(), list[i-1].GetIndex())
			return
		}
	}
}

// Poll is a poll, read.
type Poll struct {
	Target      Target
	MaxTasks    int // at least 1
	MaxBytes    int // of payloads in the answer; 0 = the node's default
	ID          string
	Identity    string
	WorkerKey   string
	Wait        time.Duration // without meaning unless HasWait
	HasWait     bool          // false: wait as long as the node is set to
	Columns     bool          // the answer's format
	Lease       time.Duration // replaces the tasks' own; 0 = not
	MinPriority task.Priority // the last priority that is taken; 5 takes all
	MaxRate     float64       // hand-outs per second the worker allows the queue; without meaning unless HasMaxRate
	HasMaxRate  bool
}

// Poll reads a poll.
func (d Decoder) Poll(r *matchingpb.PollTaskRequest) (Poll, error) {
	var f Fields
	p := Poll{
		Target:      f.stored("task_queue", r.GetTaskQueue()),
		MaxTasks:    min(max(int(r.GetMaxTasks()), 1), d.Limits.PollTasks),
		MaxBytes:    int(max(r.GetMaxBytes(), 0)),
		ID:          d.name(&f, "poll_id", r.GetPollId()),
		Identity:    d.name(&f, "identity", r.GetIdentity()),
		WorkerKey:   d.name(&f, "worker_instance_key", r.GetWorkerInstanceKey()),
		Wait:        f.duration("wait", r.GetWait()),
		HasWait:     r.GetWait() != nil,
		Columns:     r.GetFormat() == matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS,
		Lease:       f.lease("lease_duration", r.GetLeaseDuration(), d.Limits),
		MinPriority: f.priority("min_priority", r.GetMinPriority(), task.MaxPriority),
		MaxRate:     r.GetMaxQueueRate(),
		HasMaxRate:  r.MaxQueueRate != nil,
	}
	if r.GetMaxTasks() < 0 {
		f.Addf("max_tasks", "is %d, it must be at least 1, or 0 for 1", r.GetMaxTasks())
	}
	if r.GetMaxBytes() < 0 {
		f.Addf("max_bytes", "is %d, it must be at least 1, or 0 for the default", r.GetMaxBytes())
	}
	if _, known := matchingpb.GrantFormat_name[int32(r.GetFormat())]; !known {
		f.Addf("format", "is %d, the formats are 1 (tokens) and 2 (columns)", r.GetFormat())
	}
	if !(p.MaxRate >= 0 && p.MaxRate <= math.MaxFloat64) {
		f.Addf("max_queue_rate", "is %v, it must be a number of at least 0", p.MaxRate)
	}
	return p, f.Err()
}

// Failure is what a worker says of a task that failed.
type Failure struct {
	Message       string
	Details       []byte
	NonRetryable  bool          // to the dead letters at once
	RetryAfter    time.Duration // without meaning unless HasRetryAfter
	HasRetryAfter bool          // false: the retry policy decides
}

// MaxFailureMessage and MaxFailureDetails are what is kept of a failure, in
// bytes. More is cut: a long stack trace must not keep a task from failing.
const (
	MaxFailureMessage = 4 << 10
	MaxFailureDetails = 16 << 10
)

// Failure reads a failure, with field as its path; a missing one is one
// without a message.
func (d Decoder) Failure(field string, m *matchingpb.Failure) (Failure, error) {
	var f Fields
	out := Failure{
		Message:       cut(m.GetMessage(), MaxFailureMessage),
		Details:       m.GetDetails()[:min(len(m.GetDetails()), MaxFailureDetails)],
		NonRetryable:  m.GetNonRetryable(),
		RetryAfter:    d.interval(&f, field+".retry_after", m.GetRetryAfter()),
		HasRetryAfter: m.GetRetryAfter() != nil,
	}
	return out, f.Err()
}

// item reads one task of a batch that has options of its own.
func (d Decoder) item(o *matchingpb.TaskOptions, payload []byte) (task.Task, error) {
	var f Fields
	t := d.options(&f, "options", o)
	f.maxBytes("payload", len(payload), d.Limits.PayloadBytes, SettingPayloadBytes)
	return t, f.Err()
}

// name checks one of the free names that a worker gives.
func (d Decoder) name(f *Fields, field, s string) string {
	f.text(field, s, d.Limits.IdentityBytes, SettingIdentityBytes)
	return s
}

// Encode returns the message that [Decoder.Failure] reads back as f.
func (f Failure) Encode() *matchingpb.Failure {
	m := &matchingpb.Failure{Message: cut(f.Message, MaxFailureMessage), Details: f.Details, NonRetryable: f.NonRetryable}
	if f.HasRetryAfter {
		m.RetryAfter = durationpb.New(f.RetryAfter)
	}
	return m
}
