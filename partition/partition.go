// Package partition names task queues and their partitions.
//
// A task queue is a namespace, a name and a task type. It is cut into
// partitions numbered from 0; partition 0 is the root. Each partition is owned
// by one matching node at a time, which every client finds for itself by
// hashing the partition's [ID.RoutingKey] on the ring, or, when the partitions of a
// queue are spread over the nodes, its [ID.AppendSpreadKey].
//
//	kind.go         what a partition is for: normal, sticky, control
//	text.go         its name on the wire, read strictly: each partition has one
//	spread.go       its keys: for spread routing, and for gradual changes
//	tree.go         the tree in which partitions forward
//	counts.go       how many partitions a queue is read from and written to
//	drift.go        whether a caller's idea of that is still good enough
//	backlogcode.go  a number of tasks in one byte
//
// The package is pure: values in, values out. Its types are comparable and are
// used as map keys everywhere.
package partition

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxNameLength is the longest namespace or queue name in bytes.
const MaxNameLength = 1000

// ReservedPrefix starts the RPC names of partitions other than the root.
// Namespaces and queues may not begin with it.
const ReservedPrefix = "/_sys/"

// TaskType tells apart the queues that share one name.
type TaskType uint8

// The task types. One queue name may exist for each of them. The numbers are
// part of routing keys and of stored rows: never renumber.
const (
	Workflow TaskType = 1
	Activity TaskType = 2
	Dispatch TaskType = 3
)

// String returns the lower-case name that commands and logs use.
func (t TaskType) String() string {
	switch t {
	case Workflow:
		return "workflow"
	case Activity:
		return "activity"
	case Dispatch:
		return "dispatch"
	default:
		return "type(" + strconv.Itoa(int(t)) + ")"
	}
}

// Valid reports whether t is one of the known task types.
func (t TaskType) Valid() bool { return t >= Workflow && t <= Dispatch }

// append appends the number of t, which is a digit for all that are known.
func (t TaskType) append(b []byte) []byte {
	if t < 10 {
		return append(b, '0'+byte(t))
	}
	return strconv.AppendInt(b, int64(t), 10)
}

// ParseTaskType reads the form that [TaskType.String] writes.
func ParseTaskType(s string) (TaskType, error) {
	for t := Workflow; t <= Dispatch; t++ {
		if strings.EqualFold(s, t.String()) {
			return t, nil
		}
	}
	return 0, fmt.Errorf("task type %q is not one of workflow, activity, dispatch", s)
}

// Queue is a task queue. Settings, limits and statistics belong to it.
type Queue struct {
	Namespace string
	Name      string
	Type      TaskType
}

// String returns "namespace/name (type)", for people only: names may hold any
// printable character, so the form is not parsed back.
func (q Queue) String() string {
	return q.Namespace + "/" + q.Name + " (" + q.Type.String() + ")"
}

// Partition returns partition n of the queue.
func (q Queue) Partition(n int32) ID { return ID{Queue: q, Number: n} }

// Validate reports every reason why q cannot name a queue, joined into one error.
func (q Queue) Validate() error {
	var errs []error
	if err := ValidateName(q.Namespace); err != nil {
		errs = append(errs, fmt.Errorf("namespace %w", err))
	}
	if err := ValidateName(q.Name); err != nil {
		errs = append(errs, fmt.Errorf("queue name %w", err))
	}
	if !q.Type.Valid() {
		errs = append(errs, fmt.Errorf("task type %d is not one of 1 (workflow), 2 (activity), 3 (dispatch)", q.Type))
	}
	return errors.Join(errs...)
}

// ValidateName reports why s cannot be a namespace or a queue name: it must be
// valid UTF-8 without control characters, 1 to [MaxNameLength] bytes long, and
// must not begin with [ReservedPrefix].
func ValidateName(s string) error {
	switch {
	case s == "":
		return errors.New("is empty")
	case len(s) > MaxNameLength:
		return fmt.Errorf("is %d bytes long, the limit is %d", len(s), MaxNameLength)
	case strings.HasPrefix(s, ReservedPrefix):
		return fmt.Errorf("begins with the reserved prefix %q", ReservedPrefix)
	case !utf8.ValidString(s):
		return errors.New("is not valid UTF-8")
	case strings.IndexFunc(s, unicode.IsControl) >= 0:
		return errors.New("holds a control character")
	}
	return nil
}

// ID is one partition of a queue. It is comparable.
type ID struct {
	Queue
	// Number counts from 0, the root.
	Number int32
	// Kind is Normal unless something else is said.
	Kind Kind
}

// IsRoot reports whether the partition is the root of its queue.
func (p ID) IsRoot() bool { return p.Number == 0 }

// String returns "namespace/name (type) #number", for people only.
func (p ID) String() string { return p.Queue.String() + " #" + strconv.Itoa(int(p.Number)) }

// Validate reports every reason why p cannot name a partition.
func (p ID) Validate() error {
	err := p.Queue.Validate()
	if p.Number < 0 {
		err = errors.Join(err, fmt.Errorf("partition %d is negative, the root is 0", p.Number))
	}
	return errors.Join(err, p.validateKind())
}

// Compare orders partitions by namespace, name, type, number and kind.
func (p ID) Compare(other ID) int {
	return cmp.Or(
		cmp.Compare(p.Namespace, other.Namespace), cmp.Compare(p.Name, other.Name), cmp.Compare(p.Type, other.Type),
		cmp.Compare(p.Number, other.Number), cmp.Compare(p.Kind, other.Kind),
	)
}

// RPCName is the name of the partition on the wire and on the ring: the bare
// queue name for the root, "/_sys/<queue>/<number>" for the others.
func (p ID) RPCName() string {
	if p.IsRoot() {
		return p.Name
	}
	return ReservedPrefix + p.Name + "/" + strconv.Itoa(int(p.Number))
}

// RoutingKey is what is hashed on the ring to find the owner of the partition:
// "namespace:rpc_name:task_type" with the task type as a number.
func (p ID) RoutingKey() string { return string(p.AppendRoutingKey(nil)) }

// AppendRoutingKey appends [ID.RoutingKey] to b, for callers that reuse a buffer.
func (p ID) AppendRoutingKey(b []byte) []byte {
	b = append(b, p.Namespace...)
	b = append(b, ':')
	if !p.IsRoot() {
		b = append(b, ReservedPrefix...)
	}
	b = append(b, p.Name...)
	if !p.IsRoot() {
		b = append(b, '/')
		b = strconv.AppendInt(b, int64(p.Number), 10)
	}
	b = append(b, ':')
	return p.Type.append(b)
}

// Parent returns the parent of p in the tree of its queue, where every
// partition has at most degree children: parent(p) = ceil(p/degree) - 1. The
// root has none. Degrees below 1 count as 1.
func (p ID) Parent(degree int32) (ID, bool) {
	if p.Number <= 0 {
		return ID{}, false
	}
	degree = max(degree, 1)
	return p.Partition((p.Number - 1) / degree), true
}
