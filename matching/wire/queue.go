package wire

import (
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Target is what a request is meant for: a whole queue, to be routed, or one
// partition.
type Target struct {
	Queue partition.Queue
	// Number is the partition; without meaning unless IsPartition.
	Number int32
	// IsPartition tells a set partition, also 0, from an unset one.
	IsPartition bool
}

// Partition returns the partition of a target that has one, else the root.
func (t Target) Partition() partition.ID {
	if !t.IsPartition {
		return t.Queue.Partition(0)
	}
	return t.Queue.Partition(t.Number)
}

// Target reads a queue or partition, with field as the path in the request. An
// unset task type is ACTIVITY.
func (f *Fields) Target(field string, p *matchingpb.TaskQueuePartition) Target {
	if p == nil {
		f.Addf(field, "is missing: name a task queue")
		return Target{}
	}
	t := Target{Queue: partition.Queue{Namespace: p.GetNamespace(), Name: p.GetName(), Type: f.taskType(field+".type", p.GetType())}}
	if err := partition.ValidateName(t.Queue.Namespace); err != nil {
		f.Addf(field+".namespace", "%v", err)
	}
	if err := partition.ValidateName(t.Queue.Name); err != nil {
		f.Addf(field+".name", "%v", err)
	}
	if p.Partition != nil {
		t.Number, t.IsPartition = p.GetPartition(), true
		if t.Number < 0 {
			f.Addf(field+".partition", "is %d, partitions are numbered from 0", t.Number)
		}
	}
	return t
}

// stored is [Fields.Target] for tasks that are to be kept, which those of type
// DISPATCH never are: they go from DispatchTask to the poll that takes them, which
// is not served yet.
func (f *Fields) stored(field string, p *matchingpb.TaskQueuePartition) Target {
	t := f.Target(field, p)
	if t.Queue.Type == partition.Dispatch {
		f.Addf(field+".type", "is %d (dispatch), whose tasks are never stored but sent with DispatchTask, which is not served yet: name type %d or %d",
			partition.Dispatch, partition.Workflow, partition.Activity)
	}
	return t
}

func (f *Fields) taskType(field string, t matchingpb.TaskType) partition.TaskType {
	if t == matchingpb.TaskType_TASK_TYPE_UNSPECIFIED {
		return partition.Activity
	}
	// Compared before it is cut to 8 bits: 258 is not 2.
	if t < matchingpb.TaskType(partition.Workflow) || t > matchingpb.TaskType(partition.Dispatch) {
		f.Addf(field, "is %d, the task types are 1 (workflow), 2 (activity), 3 (dispatch)", t)
		return 0
	}
	return partition.TaskType(t)
}

// Partition reads a target that must name a partition.
func (f *Fields) Partition(field string, p *matchingpb.TaskQueuePartition) partition.ID {
	t := f.Target(field, p)
	if p != nil && !t.IsPartition {
		f.Addf(field+".partition", "is missing: name one partition, 0 is the root")
	}
	return t.Partition()
}

// Queue reads a target that must name a whole queue.
func (f *Fields) Queue(field string, p *matchingpb.TaskQueuePartition) partition.Queue {
	t := f.Target(field, p)
	if t.IsPartition {
		f.Addf(field+".partition", "is %d, leave it unset: the call is about the whole queue", t.Number)
	}
	return t.Queue
}

// DecodeTarget reads the queue or partition of a request that has nothing else
// to check.
func DecodeTarget(field string, p *matchingpb.TaskQueuePartition) (Target, error) {
	var f Fields
	t := f.Target(field, p)
	return t, f.Err()
}

// DecodePartition is [DecodeTarget] for a request that must name a partition.
func DecodePartition(field string, p *matchingpb.TaskQueuePartition) (partition.ID, error) {
	var f Fields
	id := f.Partition(field, p)
	return id, f.Err()
}

// DecodeQueue is [DecodeTarget] for a request that must name a whole queue.
func DecodeQueue(field string, p *matchingpb.TaskQueuePartition) (partition.Queue, error) {
	var f Fields
	q := f.Queue(field, p)
	return q, f.Err()
}

// EncodeQueue returns the message for a whole queue.
func EncodeQueue(q partition.Queue) *matchingpb.TaskQueuePartition {
	return &matchingpb.TaskQueuePartition{Namespace: q.Namespace, Name: q.Name, Type: matchingpb.TaskType(q.Type)}
}

// EncodePartition returns the message for one partition.
func EncodePartition(p partition.ID) *matchingpb.TaskQueuePartition {
	m := EncodeQueue(p.Queue)
	m.Partition = &p.Number
	return m
}

// Encode returns the message that [Fields.Target] reads back as t.
func (t Target) Encode() *matchingpb.TaskQueuePartition {
	if t.IsPartition {
		return EncodePartition(t.Partition())
	}
	return EncodeQueue(t.Queue)
}

// EncodeHolder returns the message for h; nil for the zero value.
func EncodeHolder(h task.Holder) *matchingpb.Holder {
	if h == (task.Holder{}) {
		return nil
	}
	return &matchingpb.Holder{Node: text(h.Node), RunId: text(h.RunID), Address: text(h.Address)}
}

// DecodeHolder reads what [EncodeHolder] wrote.
func DecodeHolder(h *matchingpb.Holder) task.Holder {
	return task.Holder{Node: h.GetNode(), RunID: h.GetRunId(), Address: h.GetAddress()}
}

// EncodeOwnership returns the message for o.
func EncodeOwnership(o task.Ownership) *matchingpb.NotOwner {
	return &matchingpb.NotOwner{Holder: EncodeHolder(o.Holder), Epoch: uint64(o.Epoch), ViewFingerprint: o.ViewFingerprint}
}

// DecodeOwnership reads what [EncodeOwnership] wrote.
func DecodeOwnership(m *matchingpb.NotOwner) task.Ownership {
	return task.Ownership{Holder: DecodeHolder(m.GetHolder()), Epoch: task.Epoch(m.GetEpoch()), ViewFingerprint: m.GetViewFingerprint()}
}
