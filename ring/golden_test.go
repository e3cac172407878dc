//go:build !race

// Rings of the default format: the race detector makes minutes of the seconds that
// the library takes to build them, and nothing here runs concurrently.

package ring

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/cespare/xxhash/v2"
	"github.com/cockroachdb/datadriven"
)

// TestGolden plays testdata/golden, which pins where keys go. Its answers are wire
// protocol: a difference is a new ring format, and -rewrite is not the remedy.
//
//	ring [slots=N] [replication=N] [load=F]   one node a line, NAME or NAME WEIGHT
//	lists n=N                                 one key a line; answers the slot and the list
func TestGolden(t *testing.T) {
	var r *Ring
	datadriven.RunTest(t, "testdata/golden", func(t *testing.T, d *datadriven.TestData) string {
		t.Helper()
		switch d.Cmd {
		case "ring":
			r = mustNew(t, formatArgs(t, d), nodesOf(t, d.Input))
			return describe(r)
		case "lists":
			var n int
			d.ScanArgs(t, "n", &n)
			return lists(r, strings.Fields(d.Input), n)
		default:
			t.Fatalf("%s: unknown command %q", d.Pos, d.Cmd)
			return ""
		}
	})
}

func formatArgs(t *testing.T, d *datadriven.TestData) Format {
	t.Helper()
	f := DefaultFormat()
	d.MaybeScanArgs(t, "slots", &f.Slots)
	d.MaybeScanArgs(t, "replication", &f.Replication)
	var load string
	if d.MaybeScanArgs(t, "load", &load) {
		if _, err := fmt.Sscan(load, &f.Load); err != nil {
			t.Fatalf("%s: load %q: %v", d.Pos, load, err)
		}
	}
	return f
}

// nodesOf reads one node a line; "NAME-{1..N}" stands for N of them.
func nodesOf(t *testing.T, input string) []Node {
	t.Helper()
	var nodes []Node
	for line := range strings.SplitSeq(input, "\n") {
		n := Node{Weight: 1}
		if _, err := fmt.Sscan(line, &n.Name, &n.Weight); err != nil && n.Name == "" {
			t.Fatalf("node %q: %v", line, err)
		}
		prefix, count, many := strings.Cut(n.Name, "{1..")
		if !many {
			nodes = append(nodes, n)
			continue
		}
		var last int
		if _, err := fmt.Sscanf(count, "%d}", &last); err != nil {
			t.Fatalf("node %q: %v", line, err)
		}
		for i := 1; i <= last; i++ {
			nodes = append(nodes, Node{Name: fmt.Sprintf("%s%d", prefix, i), Weight: 1})
		}
	}
	return nodes
}

// describe prints what other processes compare, and a hash over all lists.
func describe(r *Ring) string {
	h := xxhash.New()
	var b [2]byte
	for _, n := range r.table.rows {
		binary.LittleEndian.PutUint16(b[:], n)
		_, _ = h.Write(b[:])
	}
	return fmt.Sprintf("%s\nview %016x, %d nodes, lists %016x\n", r.Format().Fingerprint(), r.Fingerprint(), r.Len(), h.Sum64())
}

func lists(r *Ring, keys []string, n int) string {
	var b strings.Builder
	for _, key := range keys {
		k := KeyOf(key)
		fmt.Fprintf(&b, "%s: slot %d, %s\n", key, r.Slot(k), strings.Join(namesOf(r.LookupN(nil, k, n)), " "))
	}
	return b.String()
}
