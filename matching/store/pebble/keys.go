package pebble

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// The first byte of each key. The package doc draws what follows.
const (
	kindFormat    = 'F'
	kindCounter   = 'N'
	kindCatalogue = 'c'
	kindScheduled = 'd'
	kindIndex     = 'i'
	kindLease     = 'l'
	kindPartition = 'p'
	kindRequest   = 'r'
	kindSettings  = 's'
	kindTask      = 't'
	kindDead      = 'x'
)

// number is what the keys of a partition's rows carry for its names. It is
// given out when the partition is first acquired, and never twice.
type number uint32

// Lengths of keys and of their parts.
const (
	numberLen = 4
	idLen     = 8
	dueLen    = 8
	taskLen   = 1 + numberLen + 1 + idLen
	dueIDLen  = 1 + numberLen + dueLen + idLen
)

func appendNumber(b []byte, kind byte, n number) []byte {
	return binary.BigEndian.AppendUint32(append(b, kind), uint32(n))
}

func appendID(b []byte, id task.ID) []byte { return binary.BigEndian.AppendUint64(b, uint64(id)) }

// appendDue keeps the order of times before 1970 too.
func appendDue(b []byte, due task.Micros) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(due)^1<<63)
}

func appendTaskPrefix(b []byte, n number, p task.Priority) []byte {
	return append(appendNumber(b, kindTask, n), byte(p))
}

func appendTaskKey(b []byte, n number, k row.TaskKey) []byte {
	return appendID(appendTaskPrefix(b, n, k.Priority), k.ID)
}

func appendScheduledKey(b []byte, n number, k row.DueKey) []byte {
	return appendID(appendDue(appendNumber(b, kindScheduled, n), k.Due), k.ID)
}

func appendIndexKey(b []byte, n number, k row.DueKey) []byte {
	return appendDue(appendID(appendNumber(b, kindIndex, n), k.ID), k.Due)
}

// appendIDKey is the key of a lease or a dead row.
func appendIDKey(b []byte, kind byte, n number, id task.ID) []byte {
	return appendID(appendNumber(b, kind, n), id)
}

func appendRequestKey(b []byte, n number, requestID string) []byte {
	return append(appendNumber(b, kindRequest, n), requestID...)
}

// idOf returns the id at the end of a task, scheduled, lease or dead key.
func idOf(key []byte) (task.ID, error) {
	if len(key) < 1+numberLen+idLen {
		return 0, fmt.Errorf("%w: key %q is too short", row.ErrCorrupt, key)
	}
	return task.ID(binary.BigEndian.Uint64(key[len(key)-idLen:])), nil
}

// dueOf returns the time that begins at key[from:].
func dueOf(key []byte, from int) (task.Micros, error) {
	if len(key) != dueIDLen {
		return 0, fmt.Errorf("%w: key %q has another length than %d", row.ErrCorrupt, key, dueIDLen)
	}
	return task.Micros(binary.BigEndian.Uint64(key[from:]) ^ 1<<63), nil
}

// Names are written so that keys sort as the names do and no name runs into
// what follows it: a zero byte becomes 00 ff, and 00 01 ends the name.
const (
	nameEscape = "\x00\xff"
	nameEnd    = "\x00\x01"
)

func appendName(b []byte, name string) []byte {
	for {
		i := strings.IndexByte(name, 0)
		if i < 0 {
			return append(append(b, name...), nameEnd...)
		}
		b = append(append(b, name[:i]...), nameEscape...)
		name = name[i+1:]
	}
}

func appendQueueKey(b []byte, kind byte, q partition.Queue) []byte {
	b = appendName(append(b, kind), q.Namespace)
	return append(appendName(b, q.Name), byte(q.Type))
}

// appendPartitionKey is the key of a partition or a catalogue row.
func appendPartitionKey(b []byte, kind byte, p partition.ID) []byte {
	return binary.BigEndian.AppendUint32(appendQueueKey(b, kind, p.Queue), uint32(p.Number))
}

// parsePartitionKey reads what appendPartitionKey wrote.
func parsePartitionKey(key []byte) (partition.ID, error) {
	var p partition.ID
	rest, ok := string(key), len(key) > 0
	if ok {
		p.Namespace, rest, ok = cutName(rest[1:])
	}
	if ok {
		p.Name, rest, ok = cutName(rest)
	}
	if !ok || len(rest) != 1+numberLen {
		return partition.ID{}, fmt.Errorf("%w: key %q names no partition", row.ErrCorrupt, key)
	}
	p.Type = partition.TaskType(rest[0])
	p.Number = int32(binary.BigEndian.Uint32([]byte(rest[1:])))
	return p, nil
}

// cutName takes a name off the front of s.
func cutName(s string) (name, rest string, ok bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, 0)
		if i < 0 || i+1 >= len(s) {
			return "", "", false
		}
		b.WriteString(s[:i])
		end := s[i : i+2]
		s = s[i+2:]
		switch end {
		case nameEnd:
			return b.String(), s, true
		case nameEscape:
			b.WriteByte(0)
		default:
			return "", "", false
		}
	}
}

// justAfter returns the first key above key.
func justAfter(key []byte) []byte { return append(key, 0) }

// pastPrefix returns the first key above all that begin with prefix, in the
// same memory. The prefix does not consist of 0xff only: kinds are letters.
func pastPrefix(prefix []byte) []byte {
	for i := len(prefix) - 1; ; i-- {
		if prefix[i]++; prefix[i] != 0 {
			return prefix[:i+1]
		}
	}
}
