package route

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"pgregory.net/rapid"

	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
)

// drawRing draws a ring of 1 to 30 nodes that is cheap to build.
func drawRing(t *rapid.T) *ring.Ring {
	f := ring.Format{Slots: rapid.IntRange(1, 300).Draw(t, "slots"), Replication: 3, Load: 1.2, MaxPoints: 100}
	members := nodes(rapid.IntRange(1, 30).Draw(t, "nodes"))
	for i := range members {
		members[i].Weight = rapid.IntRange(1, 3).Draw(t, "weight")
	}
	r, err := ring.New(f, members)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func drawQueue(t *rapid.T) partition.Queue {
	name := rapid.OneOf(rapid.StringMatching(`[a-z:/0-9]{1,20}`), rapid.StringMatching(`[a-z]{40,600}`))
	return partition.Queue{
		Namespace: name.Draw(t, "namespace"), Name: name.Draw(t, "queue"),
		Type: partition.TaskType(rapid.IntRange(1, 3).Draw(t, "type")),
	}
}

func owner(t interface {
	Fatalf(format string, args ...any)
}, r *ring.Ring, p partition.ID, batch int32) ring.Node {
	n, ok := Owner(r, p, batch)
	if !ok {
		t.Fatalf("%v has no owner", p)
	}
	return n
}

func TestLaw1TheRootStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, root := drawRing(t), drawQueue(t).Partition(0)
		batch := rapid.Int32Range(1, 40).Draw(t, "batch size")
		if a, b := owner(t, r, root, 0), owner(t, r, root, batch); a != b {
			t.Fatalf("batch size %d moves the root from %q to %q", batch, a.Name, b.Name)
		}
		if byKey, _ := r.Lookup(ring.KeyOf(root.RoutingKey())); byKey != owner(t, r, root, 0) {
			t.Fatalf("the root belongs to %q, its routing key to %q", owner(t, r, root, 0).Name, byKey.Name)
		}
	})
}

// TestLaws2And3Batches looks at one batch: its partitions are spread as evenly as
// the number of nodes allows, each node once when there are enough.
func TestLaws2And3Batches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, q := drawRing(t), drawQueue(t)
		batch := rapid.Int32Range(1, 40).Draw(t, "batch size")
		first := rapid.Int32Range(0, 5).Draw(t, "batch") * batch
		count := map[string]int{}
		for p := first; p < first+batch; p++ {
			count[owner(t, r, q.Partition(p), batch).Name]++
		}
		if want := min(int(batch), r.Len()); len(count) != want {
			t.Fatalf("a batch of %d lies on %d of %d nodes", batch, len(count), r.Len())
		}
		least, most := int(batch), 0
		for _, n := range count {
			least, most = min(least, n), max(most, n)
		}
		if most-least > 1 {
			t.Fatalf("a batch of %d on %d nodes: %v", batch, r.Len(), count)
		}
	})
}

// TestLaw3Wrap: position index of the list, modulo the number of nodes.
func TestLaw3Wrap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, q := drawRing(t), drawQueue(t)
		batch, number := rapid.Int32Range(1, 90).Draw(t, "batch size"), rapid.Int32Range(0, 300).Draw(t, "partition")
		key, index := q.Partition(number).AppendSpreadKey(nil, batch)
		list := r.LookupN(nil, ring.KeyOfBytes(key), r.Len())
		if got, want := owner(t, r, q.Partition(number), batch), list[int(index)%len(list)]; got != want {
			t.Fatalf("partition %d, batch size %d: %q, want %q", number, batch, got.Name, want.Name)
		}
	})
}

// TestLongNames: both buffers give the key that a plain string gives.
func TestLongNames(t *testing.T) {
	for n := 1; n <= partition.MaxNameLength; n++ {
		q := partition.Queue{Namespace: strings.Repeat("n", n), Name: strings.Repeat("q", n), Type: partition.Activity}
		for _, batch := range []int32{0, 8} {
			p := q.Partition(1<<31 - 1)
			key, index := p.AppendSpreadKey(nil, batch)
			if got, want := Of(p, batch), (Place{ring.KeyOf(string(key)), int(index)}); got != want {
				t.Fatalf("names of %d bytes, batch size %d: %v, want %v", n, batch, got, want)
			}
			if longest := len(key); n == partition.MaxNameLength && longest > longestKey {
				t.Fatalf("the longest key has %d bytes, the buffer %d", longest, longestKey)
			}
		}
	}
}

func TestNoNode(t *testing.T) {
	p := partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}.Partition(25)
	for _, batch := range []int32{0, 8} {
		if n, ok := Owner(nil, p, batch); ok {
			t.Errorf("an empty ring gives %v", n)
		}
		if n, ok := Explain(nil, p, batch).Owner(); ok {
			t.Errorf("an empty ring is explained to give %v", n)
		}
	}
}

func TestTooWide(t *testing.T) {
	for _, tc := range []struct {
		batch int32
		nodes int
		want  bool
	}{{0, 1, false}, {1, 1, false}, {2, 3, true}, {2, 4, false}, {8, 15, true}, {8, 16, false}, {8, 3, true}} {
		if TooWide(tc.batch, tc.nodes) != tc.want {
			t.Errorf("TooWide(%d, %d) = %v", tc.batch, tc.nodes, !tc.want)
		}
	}
}

func TestExplain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, q := drawRing(t), drawQueue(t)
		p := q.Partition(rapid.Int32Range(0, 300).Draw(t, "partition"))
		batch := rapid.Int32Range(0, 60).Draw(t, "batch size")
		e := Explain(r, p, batch)
		n, ok := e.Owner()
		if want := owner(t, r, p, batch); !ok || n != want {
			t.Fatalf("explained as %q, it is %q", n.Name, want.Name)
		}
		if batch > 0 && (e.Batch*batch+e.Index != p.Number || e.Index >= batch) {
			t.Fatalf("partition %d is explained as index %d of batch %d of size %d", p.Number, e.Index, e.Batch, batch)
		}
		if e.Slot != r.Slot(ring.KeyOf(e.Key)) {
			t.Fatalf("slot %d, key %q", e.Slot, e.Key)
		}
		if len(e.List) != min(int(e.Index)+1, r.Len()) {
			t.Fatalf("index %d of %d nodes is explained by a list of %d", e.Index, r.Len(), len(e.List))
		}
	})
}

// TestGolden pins owners of partitions: how names become keys, and keys nodes. It
// is wire protocol, as ring/testdata/golden; a difference is a new ring format.
//
//	owners queue=NAME type=TYPE batch=N   partitions, on 10 nodes; answers their owners
func TestGolden(t *testing.T) {
	r := mustRing(t, nodes(10))
	datadriven.RunTest(t, "testdata/golden", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		q := partition.Queue{Namespace: "ns"}
		var typ string
		var batch int32
		d.ScanArgs(t, "queue", &q.Name)
		d.ScanArgs(t, "type", &typ)
		d.ScanArgs(t, "batch", &batch)
		var err error
		if q.Type, err = partition.ParseTaskType(typ); err != nil {
			t.Fatalf("%s: %v", d.Pos, err)
		}
		var b strings.Builder
		for field := range strings.FieldsSeq(d.Input) {
			number, err := strconv.ParseInt(field, 10, 32)
			if err != nil {
				t.Fatalf("%s: %v", d.Pos, err)
			}
			fmt.Fprintf(&b, "%d %s\n", number, owner(t, r, q.Partition(int32(number)), batch).Name)
		}
		return b.String()
	})
}
