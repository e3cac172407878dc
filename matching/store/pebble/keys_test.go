package pebble

import (
	"bytes"
	"cmp"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// anyName draws names that try the escaping: few different bytes, zero often.
func anyName(t *rapid.T, label string) string {
	return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 0xfe, 0xff}), 0, 6).Draw(t, label))
}

func anyPartition(t *rapid.T, label string) partition.ID {
	q := partition.Queue{
		Namespace: anyName(t, label+" namespace"),
		Name:      anyName(t, label+" name"),
		Type:      partition.TaskType(rapid.Uint8Range(1, 3).Draw(t, label+" type")),
	}
	return q.Partition(rapid.Int32Min(0).Draw(t, label+" number"))
}

func TestPartitionKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyPartition(t, "a"), anyPartition(t, "b")
		keyA, keyB := appendPartitionKey(nil, kindCatalogue, a), appendPartitionKey(nil, kindCatalogue, b)
		if back, err := parsePartitionKey(keyA); err != nil || back != a {
			t.Fatalf("%q reads back as %+v, %v, want %+v", keyA, back, err, a)
		}
		want := cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
			cmp.Compare(a.Type, b.Type), cmp.Compare(a.Number, b.Number))
		if got := bytes.Compare(keyA, keyB); got != want {
			t.Fatalf("keys of %+v and %+v compare as %d, want %d", a, b, got, want)
		}
	})
}

func TestRowKeysSortAsRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(label string) row.DueKey {
			return row.DueKey{
				Due: task.Micros(rapid.Int64().Draw(t, label+" due")), ID: task.ID(rapid.Uint64().Draw(t, label+" id")),
			}
		}
		a, b := draw("a"), draw("b")
		keyA, keyB := appendScheduledKey(nil, 1, a), appendScheduledKey(nil, 1, b)
		if (bytes.Compare(keyA, keyB) < 0) != a.Less(b) {
			t.Fatalf("keys of %+v and %+v sort otherwise than they do", a, b)
		}
		due, err := dueOf(keyA, 1+numberLen)
		id, idErr := idOf(keyA)
		if due != a.Due || id != a.ID || err != nil || idErr != nil {
			t.Fatalf("key of %+v reads back as %d, %d", a, due, id)
		}
		due, err = dueOf(appendIndexKey(nil, 1, a), 1+numberLen+idLen)
		if due != a.Due || err != nil {
			t.Fatalf("index key of %+v reads back as %d, %v", a, due, err)
		}
	})
}

func TestPastPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		prefix := append([]byte{'t'}, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 0, 5).Draw(t, "prefix")...)
		key := append([]byte{'t'}, rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 0xfe, 0xff}), 0, 8).Draw(t, "key")...)
		past := pastPrefix(bytes.Clone(prefix))
		inside := bytes.Compare(key, prefix) >= 0 && bytes.Compare(key, past) < 0
		if inside != bytes.HasPrefix(key, prefix) {
			t.Fatalf("key %x lies inside [%x, %x): %v", key, prefix, past, inside)
		}
	})
}

func FuzzPartitionKey(f *testing.F) {
	f.Add(appendPartitionKey(nil, kindCatalogue, queue.Partition(7)))
	f.Add([]byte("ca\x00\x01b\x00\xff\x00\x01\x02\x00\x00\x00\x01"))
	f.Add([]byte("c\x00"))
	f.Fuzz(func(t *testing.T, key []byte) {
		p, err := parsePartitionKey(key)
		if err != nil {
			if !errors.Is(err, row.ErrCorrupt) {
				t.Fatalf("%q: error %v does not match ErrCorrupt", key, err)
			}
			return
		}
		if back := appendPartitionKey(nil, key[0], p); !bytes.Equal(back, key) {
			t.Fatalf("%q names %+v, which is written %q", key, p, back)
		}
	})
}

func TestValuesRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := held{
			number: number(rapid.Uint32().Draw(t, "number")),
			epoch:  task.Epoch(rapid.Uint64().Draw(t, "epoch")),
			holder: task.Holder{Node: anyName(t, "node"), RunID: anyName(t, "run"), Address: anyName(t, "address")},
			meta: row.Meta{
				Released: rapid.Bool().Draw(t, "released"), MayHold: rapid.Bool().Draw(t, "may hold"), Listed: rapid.Bool().Draw(t, "listed"),
				Acks: [task.Priorities]task.ID{1: task.ID(rapid.Uint64().Draw(t, "ack"))},
			},
		}
		newer := appendText(appendNum(nil, 100, 5), 101, "of a newer version")
		if back, err := decodeHeld(append(newer, appendHeld(nil, h)...)); err != nil || back != h {
			t.Errorf("partition reads back as %+v, %v, want %+v", back, err, h)
		}
		d := document{version: rapid.Int64().Draw(t, "version"), exists: rapid.Bool().Draw(t, "exists"), content: []byte("x" + anyName(t, "content"))}
		if back, err := decodeDocument(appendDocument(nil, d)); err != nil || !reflect.DeepEqual(back, d) {
			t.Errorf("settings read back as %+v, %v, want %+v", back, err, d)
		}
	})
}

func FuzzValues(f *testing.F) {
	f.Add(appendHeld(nil, held{number: 1, epoch: 2, holder: holder, meta: row.Meta{Acks: [task.Priorities]task.ID{1}}}))
	f.Add(appendFormat(nil, format{version: 1, id: task.StoreID{1}, created: 5}))
	f.Add([]byte{0x12, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, decode := range []func([]byte) error{
			func(b []byte) error { _, err := decodeHeld(b); return err },
			func(b []byte) error { _, err := decodeFormat(b); return err },
			func(b []byte) error { _, err := decodeDocument(b); return err },
			func(b []byte) error { _, err := decodeRequest("", b); return err },
		} {
			if err := decode(b); err != nil && !errors.Is(err, row.ErrCorrupt) {
				t.Fatalf("%x: error %v does not match ErrCorrupt", b, err)
			}
		}
	})
}
