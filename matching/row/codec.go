package row

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/taskring/taskring/matching/task"
)

// Rows are encoded as protobuf messages, written by hand for speed. Fields with
// their zero value are left out; fields that this version does not know are
// skipped, so that a newer version's rows can be read. Never reuse a number.
//
//	task: 1 payload, 2 headers{1 key, 2 value}, 3 priority, 4 fairness key,
//	      5 fairness weight, 6 added, 7 not before, 8 expires, 9 max attempts,
//	      10 retry{1 initial, 2 max, 3 factor, 4 jitter}, 11 lease duration,
//	      12 durability, 13 request id, 14 attempts, 15 deliveries,
//	      16 last failure, 17 folded lease, 18 dead reason, 19 dead at
//	lease: 1 delivery, 2 epoch, 3 attempts, 4 duration, 5 live, 6 identity,
//	      7 priority, 8 due
//
// Times are microseconds since the Unix epoch, durations nanoseconds.

// ErrCorrupt is matched by the error of a row that cannot be decoded.
var ErrCorrupt = errors.New("corrupt row")

// AppendTask appends the encoded row to b. The id and due time are not in it:
// they stand in the row's key.
func AppendTask(b []byte, r Task) []byte {
	b = appendTask(b, r.Task)
	if r.Folded != nil {
		b = appendMessage(b, 17, AppendLease(nil, *r.Folded))
	}
	return b
}

// AppendDead appends the encoded dead row to b, without the id.
func AppendDead(b []byte, d DeadTask) []byte {
	b = appendTask(b, d.Task)
	b = appendString(b, 18, d.Reason)
	return appendUint(b, 19, uint64(d.At))
}

func appendTask(b []byte, t *task.Task) []byte {
	b = appendBytes(b, 1, t.Payload)
	b = appendHeaders(b, t.Headers)
	b = appendUint(b, 3, uint64(t.Priority))
	b = appendString(b, 4, t.FairnessKey)
	b = appendFloat(b, 5, float64(t.FairnessWeight))
	b = appendUint(b, 6, uint64(t.AddedAt))
	b = appendUint(b, 7, uint64(t.NotBefore))
	b = appendUint(b, 8, uint64(t.ExpiresAt))
	b = appendUint(b, 9, uint64(t.MaxAttempts))
	if t.Retry != (task.RetryPolicy{}) {
		var m []byte
		m = appendUint(m, 1, uint64(t.Retry.Initial))
		m = appendUint(m, 2, uint64(t.Retry.Max))
		m = appendFloat(m, 3, t.Retry.Factor)
		m = appendFloat(m, 4, t.Retry.Jitter)
		b = appendMessage(b, 10, m)
	}
	b = appendUint(b, 11, uint64(t.LeaseDuration))
	b = appendUint(b, 12, uint64(t.Durability))
	b = appendString(b, 13, t.RequestID)
	b = appendUint(b, 14, uint64(t.Attempts))
	b = appendUint(b, 15, uint64(t.Deliveries))
	return appendString(b, 16, t.LastFailure)
}

// appendHeaders writes headers in the order of their keys, so that equal tasks
// have equal bytes.
func appendHeaders(b []byte, headers map[string]string) []byte {
	if len(headers) == 0 {
		return b
	}
	keys := make([]string, 0, len(headers))
	for k := range headers {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		m := appendString(nil, 1, k)
		b = appendMessage(b, 2, appendString(m, 2, headers[k]))
	}
	return b
}

// DecodeTask reads what [AppendTask] wrote. The task's id is id. Nothing of the
// result points into b.
func DecodeTask(id task.ID, b []byte) (Task, error) {
	t, _, folded, err := decodeTask(id, b)
	return Task{Task: t, Folded: folded}, err
}

// DecodeDead reads what [AppendDead] wrote, like [DecodeTask].
func DecodeDead(id task.ID, b []byte) (DeadTask, error) {
	t, dead, _, err := decodeTask(id, b)
	dead.Task = t
	return dead, err
}

func decodeTask(id task.ID, b []byte) (*task.Task, DeadTask, *Lease, error) {
	t := &task.Task{ID: id}
	var dead DeadTask
	var folded *Lease
	err := eachField(b, func(num protowire.Number, v value) error {
		switch num {
		case 17:
			l, err := DecodeLease(id, v.bytes)
			folded = &l
			return err
		case 18:
			dead.Reason = string(v.bytes)
		case 19:
			dead.At = task.Micros(v.num)
		default:
			return setTaskField(t, num, v)
		}
		return nil
	})
	if err != nil {
		return nil, DeadTask{}, nil, fmt.Errorf("task %s: %w: %w", id, ErrCorrupt, err)
	}
	return t, dead, folded, nil
}

func setTaskField(t *task.Task, num protowire.Number, v value) error {
	switch num {
	case 1:
		t.Payload = append([]byte(nil), v.bytes...)
	case 2:
		return setHeader(t, v.bytes)
	case 3:
		t.Priority = task.Priority(v.num)
	case 4:
		t.FairnessKey = string(v.bytes)
	case 5:
		t.FairnessWeight = float32(math.Float64frombits(v.num))
	case 6:
		t.AddedAt = task.Micros(v.num)
	case 7:
		t.NotBefore = task.Micros(v.num)
	case 8:
		t.ExpiresAt = task.Micros(v.num)
	case 9:
		t.MaxAttempts = uint32(v.num)
	case 10:
		return setRetry(&t.Retry, v.bytes)
	case 11:
		t.LeaseDuration = time.Duration(v.num)
	case 12:
		t.Durability = task.Durability(v.num)
	case 13:
		t.RequestID = string(v.bytes)
	case 14:
		t.Attempts = uint32(v.num)
	case 15:
		t.Deliveries = uint32(v.num)
	case 16:
		t.LastFailure = string(v.bytes)
	}
	return nil
}

func setHeader(t *task.Task, b []byte) error {
	var key, val string
	err := eachField(b, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			key = string(v.bytes)
		case 2:
			val = string(v.bytes)
		}
		return nil
	})
	if t.Headers == nil {
		t.Headers = make(map[string]string)
	}
	t.Headers[key] = val
	return err
}

func setRetry(r *task.RetryPolicy, b []byte) error {
	return eachField(b, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			r.Initial = time.Duration(v.num)
		case 2:
			r.Max = time.Duration(v.num)
		case 3:
			r.Factor = math.Float64frombits(v.num)
		case 4:
			r.Jitter = math.Float64frombits(v.num)
		}
		return nil
	})
}

// AppendLease appends the encoded lease to b, without the id.
func AppendLease(b []byte, l Lease) []byte {
	b = appendUint(b, 1, uint64(l.Delivery))
	b = appendUint(b, 2, uint64(l.Epoch))
	b = appendUint(b, 3, uint64(l.Attempts))
	b = appendUint(b, 4, uint64(l.Duration))
	if l.Live {
		b = appendUint(b, 5, 1)
	}
	b = appendString(b, 6, l.Identity)
	b = appendUint(b, 7, uint64(l.Priority))
	return appendUint(b, 8, uint64(l.Due))
}

// DecodeLease reads what [AppendLease] wrote. The lease's id is id.
func DecodeLease(id task.ID, b []byte) (Lease, error) {
	l := Lease{ID: id}
	err := eachField(b, func(num protowire.Number, v value) error {
		switch num {
		case 1:
			l.Delivery = uint32(v.num)
		case 2:
			l.Epoch = task.Epoch(v.num)
		case 3:
			l.Attempts = uint32(v.num)
		case 4:
			l.Duration = time.Duration(v.num)
		case 5:
			l.Live = v.num != 0
		case 6:
			l.Identity = string(v.bytes)
		case 7:
			l.Priority = task.Priority(v.num)
		case 8:
			l.Due = task.Micros(v.num)
		}
		return nil
	})
	if err != nil {
		return Lease{}, fmt.Errorf("lease of task %s: %w: %w", id, ErrCorrupt, err)
	}
	return l, nil
}

// value is one decoded field: num for numbers, bytes for the rest.
type value struct {
	num   uint64
	bytes []byte
}

// eachField calls f with each field of the message b that has a type rows use.
func eachField(b []byte, f func(protowire.Number, value) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("tag of a field: %w", protowire.ParseError(n))
		}
		b = b[n:]
		var v value
		switch typ {
		case protowire.VarintType:
			v.num, n = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v.num, n = protowire.ConsumeFixed64(b)
		case protowire.BytesType:
			v.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("field %d: %w", num, protowire.ParseError(n))
		}
		b = b[n:]
		if err := f(num, v); err != nil {
			return err
		}
	}
	return nil
}

func appendUint(b []byte, num protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, num, protowire.VarintType), v)
}

func appendFloat(b []byte, num protowire.Number, v float64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendFixed64(protowire.AppendTag(b, num, protowire.Fixed64Type), math.Float64bits(v))
}

func appendBytes(b []byte, num protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}
	return appendMessage(b, num, v)
}

func appendString(b []byte, num protowire.Number, v string) []byte {
	if v == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), v)
}

// appendMessage writes v even when it is empty.
func appendMessage(b []byte, num protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, num, protowire.BytesType), v)
}
