package wire

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// State is where a task is in its life.
type State uint8

// The states, with the numbers of the wire.
const (
	Ready     = State(matchingpb.TaskState_TASK_STATE_READY)
	Scheduled = State(matchingpb.TaskState_TASK_STATE_SCHEDULED)
	Leased    = State(matchingpb.TaskState_TASK_STATE_LEASED)
	Dead      = State(matchingpb.TaskState_TASK_STATE_DEAD)
)

// Description is a task as it is shown to people.
type Description struct {
	Partition partition.ID
	Task      *task.Task // read only; holds attempts, deliveries, last failure
	State     State
	Due       task.Micros // when a Scheduled task becomes ready
	Lease     *Lease      // of a Leased task
	Dead      *Death      // of a Dead task
}

// Lease tells who works on a task.
type Lease struct {
	Identity  string // of the poll; empty after a restart of the node
	Grant     task.Grant
	Duration  time.Duration
	Remaining time.Duration
}

// Death tells why a task is in the dead letters and since when.
type Death struct {
	Reason string
	At     task.Micros
}

// Encode returns the message for d; the payload only when asked for.
func (d Description) Encode(payload bool) *matchingpb.TaskDescription {
	t := d.Task
	m := &matchingpb.TaskDescription{
		Id:          uint64(t.ID),
		Partition:   EncodePartition(d.Partition),
		State:       matchingpb.TaskState(d.State),
		PayloadSize: int64(len(t.Payload)),
		Options:     EncodeOptions(t),
		Attempts:    t.Attempts,
		Deliveries:  t.Deliveries,
		AddedAt:     EncodeTime(t.AddedAt),
		DueAt:       EncodeTime(d.Due),
		ExpiresAt:   EncodeTime(t.ExpiresAt),
		LastFailure: cut(t.LastFailure, MaxFailureMessage),
	}
	if payload {
		m.Payload = t.Payload
	}
	if l := d.Lease; l != nil {
		m.Lease = &matchingpb.LeaseDescription{
			Identity:      l.Identity,
			Delivery:      l.Grant.Delivery,
			Epoch:         uint64(l.Grant.Epoch),
			LeaseDuration: durationpb.New(l.Duration),
			Remaining:     durationpb.New(l.Remaining),
		}
	}
	if d.Dead != nil {
		m.DeadReason, m.DeadAt = text(d.Dead.Reason), EncodeTime(d.Dead.At)
	}
	return m
}

// DecodeDescription reads what [Description.Encode] wrote. A message that names
// no partition is an error: no node sends it.
func DecodeDescription(m *matchingpb.TaskDescription) (Description, error) {
	id, err := DecodePartition("partition", m.GetPartition())
	if err != nil {
		return Description{}, task.Errorf(task.Internal, "a description of a task is malformed: %w", err)
	}
	d := Description{Partition: id, State: State(m.GetState()), Due: DecodeTime(m.GetDueAt()), Task: describedTask(m)}
	if l := m.GetLease(); l != nil {
		d.Lease = &Lease{
			Identity:  l.GetIdentity(),
			Grant:     task.Grant{ID: d.Task.ID, Delivery: l.GetDelivery(), Epoch: task.Epoch(l.GetEpoch())},
			Duration:  l.GetLeaseDuration().AsDuration(),
			Remaining: l.GetRemaining().AsDuration(),
		}
	}
	if d.State == Dead {
		d.Dead = &Death{Reason: m.GetDeadReason(), At: DecodeTime(m.GetDeadAt())}
	}
	return d, nil
}

func describedTask(m *matchingpb.TaskDescription) *task.Task {
	o := m.GetOptions()
	r := o.GetRetryPolicy()
	return &task.Task{
		ID:             task.ID(m.GetId()),
		Payload:        m.GetPayload(),
		Headers:        o.GetHeaders(),
		Priority:       decodePriority(o.GetPriority()),
		FairnessKey:    o.GetFairnessKey(),
		FairnessWeight: o.GetFairnessWeight(),
		AddedAt:        DecodeTime(m.GetAddedAt()),
		NotBefore:      DecodeTime(o.GetNotBefore()),
		ExpiresAt:      DecodeTime(m.GetExpiresAt()),
		MaxAttempts:    uint32(max(o.GetMaxAttempts(), 0)),
		Retry: task.RetryPolicy{
			Initial: r.GetInitialInterval().AsDuration(),
			Max:     r.GetMaximumInterval().AsDuration(),
			Factor:  r.GetBackoffCoefficient(),
			Jitter:  r.GetJitter(),
		},
		LeaseDuration: o.GetLeaseDuration().AsDuration(),
		Durability:    decodeDurability(o.GetDurability()),
		RequestID:     o.GetRequestId(),
		Attempts:      m.GetAttempts(),
		Deliveries:    m.GetDeliveries(),
		LastFailure:   m.GetLastFailure(),
	}
}

// DecodeTime reads what [EncodeTime] wrote; 0 when unset.
func DecodeTime(t *timestamppb.Timestamp) task.Micros {
	if t == nil {
		return 0
	}
	return task.At(t.AsTime())
}
