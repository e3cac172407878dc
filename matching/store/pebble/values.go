package pebble

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
)

// formatVersion is the version of keys and values that this package writes.
const formatVersion = 1

// format is the row that makes a Pebble database a store of tasks.
type format struct {
	version uint64
	id      task.StoreID
	created task.Micros
}

// held is the row of a partition: who holds it, and the holder's metadata.
type held struct {
	number number
	epoch  task.Epoch
	holder task.Holder
	meta   row.Meta
}

func (h *held) ownership() task.Ownership { return task.Ownership{Holder: h.holder, Epoch: h.epoch} }

// document is a queue's settings. One that was removed keeps its version, so
// that no version ever names two contents.
type document struct {
	version int64
	exists  bool
	content []byte
}

// visibleVersion is the version that callers see: 0 for no document.
func (d document) visibleVersion() int64 {
	if !d.exists {
		return 0
	}
	return d.version
}

// Values that no other package shares are protobuf messages, like rows: zero
// fields are left out, unknown ones skipped, numbers never used again.
//
//	format:    1 version, 2 store id, 3 created
//	partition: 1 number, 2 epoch, 3 node, 4 run id, 5 address, 6 released,
//	           7 may hold, 8 listed, 9 acks (5 times 8 bytes, big endian)
//	settings:  1 version, 2 exists, 3 content
//	request:   1 task id, 2 at

func appendNum(b []byte, field protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFlag(b []byte, field protowire.Number, v bool) []byte {
	return appendNum(b, field, protowire.EncodeBool(v))
}

func appendText[T string | []byte](b []byte, field protowire.Number, v T) []byte {
	if len(v) == 0 {
		return b
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(len(v)))
	return append(b, v...)
}

func appendFormat(b []byte, f format) []byte {
	b = appendNum(b, 1, f.version)
	b = appendText(b, 2, f.id[:])
	return appendNum(b, 3, uint64(f.created))
}

func appendHeld(b []byte, h held) []byte {
	b = appendNum(b, 1, uint64(h.number))
	b = appendNum(b, 2, uint64(h.epoch))
	b = appendText(b, 3, h.holder.Node)
	b = appendText(b, 4, h.holder.RunID)
	b = appendText(b, 5, h.holder.Address)
	b = appendFlag(b, 6, h.meta.Released)
	b = appendFlag(b, 7, h.meta.MayHold)
	b = appendFlag(b, 8, h.meta.Listed)
	if h.meta.Acks != [task.Priorities]task.ID{} {
		var acks []byte
		for _, id := range h.meta.Acks {
			acks = binary.BigEndian.AppendUint64(acks, uint64(id))
		}
		b = appendText(b, 9, acks)
	}
	return appendNum(b, 10, uint64(h.meta.Backlog))
}

func appendDocument(b []byte, d document) []byte {
	b = appendNum(b, 1, uint64(d.version))
	b = appendFlag(b, 2, d.exists)
	return appendText(b, 3, d.content)
}

func appendRequest(b []byte, q row.Request) []byte {
	b = appendNum(b, 1, uint64(q.ID))
	return appendNum(b, 2, uint64(q.At))
}

// field is one decoded field: num for numbers, text for the rest. The text
// points into the value that was read.
type field struct {
	number protowire.Number
	num    uint64
	text   []byte
}

// eachField calls f with the fields of a value.
func eachField(b []byte, f func(field) error) error {
	for len(b) > 0 {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return fmt.Errorf("%w: %w", row.ErrCorrupt, protowire.ParseError(n))
		}
		b = b[n:]
		got := field{number: num}
		switch typ {
		case protowire.VarintType:
			got.num, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			got.text, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(num, typ, b)
		}
		if n < 0 {
			return fmt.Errorf("%w: %w", row.ErrCorrupt, protowire.ParseError(n))
		}
		b = b[n:]
		if err := f(got); err != nil {
			return err
		}
	}
	return nil
}

func decodeFormat(b []byte) (format, error) {
	var f format
	err := eachField(b, func(v field) error {
		switch v.number {
		case 1:
			f.version = v.num
		case 2:
			if copy(f.id[:], v.text) != len(v.text) || len(v.text) != len(f.id) {
				return fmt.Errorf("%w: a store id of %d bytes, want 16", row.ErrCorrupt, len(v.text))
			}
		case 3:
			f.created = task.Micros(v.num)
		}
		return nil
	})
	return f, err
}

func decodeHeld(b []byte) (held, error) {
	var h held
	err := eachField(b, func(v field) error {
		switch v.number {
		case 1:
			h.number = number(v.num)
		case 2:
			h.epoch = task.Epoch(v.num)
		case 3:
			h.holder.Node = string(v.text)
		case 4:
			h.holder.RunID = string(v.text)
		case 5:
			h.holder.Address = string(v.text)
		case 6:
			h.meta.Released = v.num != 0
		case 7:
			h.meta.MayHold = v.num != 0
		case 8:
			h.meta.Listed = v.num != 0
		case 9:
			return decodeAcks(&h.meta, v.text)
		case 10:
			h.meta.Backlog = int64(v.num)
		}
		return nil
	})
	return h, err
}

func decodeAcks(m *row.Meta, b []byte) error {
	if len(b) != 8*len(m.Acks) {
		return fmt.Errorf("%w: levels of %d bytes", row.ErrCorrupt, len(b))
	}
	for i := range m.Acks {
		m.Acks[i] = task.ID(binary.BigEndian.Uint64(b[8*i:]))
	}
	return nil
}

func decodeDocument(b []byte) (document, error) {
	var d document
	err := eachField(b, func(v field) error {
		switch v.number {
		case 1:
			d.version = int64(v.num)
		case 2:
			d.exists = v.num != 0
		case 3:
			d.content = append([]byte(nil), v.text...)
		}
		return nil
	})
	return d, err
}

func decodeRequest(requestID string, b []byte) (row.Request, error) {
	q := row.Request{RequestID: requestID}
	err := eachField(b, func(v field) error {
		switch v.number {
		case 1:
			q.ID = task.ID(v.num)
		case 2:
			q.At = task.Micros(v.num)
		}
		return nil
	})
	return q, err
}
