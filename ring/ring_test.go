package ring

import (
	"errors"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestFormatRefusesWhatIsOutOfBounds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*Format)
		want   string // stands in the error; empty means accepted
	}{
		{"default", func(*Format) {}, ""},
		{"least", func(f *Format) { *f = Format{Slots: 1, Replication: 1, Load: 1, MaxPoints: 1} }, ""},
		{"no slots", func(f *Format) { f.Slots = 0 }, "slots is 0"},
		{"negative slots", func(f *Format) { f.Slots = -1 }, "slots is -1"},
		{"too many slots", func(f *Format) { f.Slots = maxSlots + 1 }, "1 to 1048576"},
		{"no replication", func(f *Format) { f.Replication = 0 }, "replication is 0"},
		{"low load", func(f *Format) { f.Load = 0.99 }, "load is 0.99"},
		{"no number", func(f *Format) { f.Load = math.NaN() }, "load is NaN"},
		{"endless", func(f *Format) { f.Load = math.Inf(1) }, "load is +Inf"},
		{"no points", func(f *Format) { f.MaxPoints = 0 }, "max points is 0"},
		{"nothing given", func(f *Format) { *f = Format{} }, "replication is 0"},
	} {
		f := DefaultFormat()
		tc.change(&f)
		_, err := NewBuilder(f)
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestFormatMatch(t *testing.T) {
	ours := DefaultFormat()
	if err := ours.Match(ours.Fingerprint()); err != nil {
		t.Error(err)
	}
	for _, change := range []func(*Format){
		func(f *Format) { f.Slots++ },
		func(f *Format) { f.Replication++ },
		func(f *Format) { f.Load += 0.01 },
		func(f *Format) { f.MaxPoints++ },
	} {
		other := DefaultFormat()
		change(&other)
		err := ours.Match(other.Fingerprint())
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), ours.Fingerprint()) || !strings.Contains(err.Error(), other.Fingerprint()) {
			t.Errorf("%+v: error %v does not name both formats", other, err)
		}
	}
}

// TestLibraryVersion holds go.mod to the version that the format names: another
// one places more than half of the slots elsewhere.
func TestLibraryVersion(t *testing.T) {
	mod, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`github\.com/buraksezer/consistent (\S+)`).FindSubmatch(mod)
	if found == nil || "consistent/"+string(found[1]) != library {
		t.Errorf("go.mod requires %q, the ring format says %q", found, library)
	}
}

func TestBuildRefusesBadNodes(t *testing.T) {
	f := Format{Slots: 31, Replication: 2, Load: 1.2, MaxPoints: 5}
	for _, tc := range []struct {
		name  string
		nodes []Node
		want  []string
	}{
		{"no name", []Node{{Weight: 1}}, []string{"name of a node is empty"}},
		{"separator", Named("a#1"), []string{`"a#1"`, `"#"`}},
		{"negative", []Node{{Name: "a", Weight: -1}}, []string{`"a"`, "weight -1", "0 to 5"}},
		{"heavy", []Node{{Name: "a", Weight: 6}}, []string{"weight 6", "max points"}},
		{"heavy together", []Node{{Name: "a", Weight: 3}, {Name: "b", Weight: 3}}, []string{"add up to 6", "limit is 5"}},
		{"all at once", []Node{{Name: "a", Weight: -1}, {Name: "b#", Weight: 1}}, []string{"weight -1", `"b#"`}},
	} {
		b, err := NewBuilder(f)
		if err != nil {
			t.Fatal(err)
		}
		before, err := b.Build(Named("x", "y"))
		if err != nil {
			t.Fatal(err)
		}
		got, err := b.Build(tc.nodes)
		if err == nil || got != before {
			t.Errorf("%s: error %v, ring of %v", tc.name, err, namesOf(got.Nodes()))
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %s", tc.name, err, w)
			}
		}
		if _, err := New(f, tc.nodes); err == nil {
			t.Errorf("%s: New accepts it", tc.name)
		}
	}
}

// TestDuplicates: of two entries of one name the same one counts in any order.
func TestDuplicates(t *testing.T) {
	a := Node{Name: "a", Weight: 1, RunID: "1", Address: "old"}
	b := Node{Name: "a", Weight: 1, RunID: "2", Address: "new"}
	for _, nodes := range [][]Node{{a, b}, {b, a}, {a, b, a}} {
		r := mustNew(t, DefaultFormat(), nodes)
		if got := r.Nodes(); len(got) != 1 || got[0] != b {
			t.Errorf("%v gives %v", nodes, got)
		}
	}
	input := []Node{b, a}
	mustNew(t, DefaultFormat(), input)
	if !slices.Equal(input, []Node{b, a}) {
		t.Errorf("the caller's slice was changed to %v", input)
	}
}

// TestEmpty: nil, zero and drained rings give nothing, and say so.
func TestEmpty(t *testing.T) {
	var none *Ring
	drained := mustNew(t, DefaultFormat(), []Node{{Name: "a"}})
	for name, r := range map[string]*Ring{"nil": none, "zero": {}, "drained": drained} {
		if _, ok := r.Lookup(1); ok {
			t.Errorf("%s: Lookup gives a node", name)
		}
		if r.Len() != 0 || len(r.Nodes()) != 0 || len(r.Owned()) != 0 || len(r.LookupN(nil, 1, 3)) != 0 || r.Slot(1) != 0 || r.Crowded() {
			t.Errorf("%s: the ring is not empty", name)
		}
		if r.Fingerprint() != drained.Fingerprint() || r.Fingerprint() == 0 {
			t.Errorf("%s: fingerprint %x", name, r.Fingerprint())
		}
	}
	if none.Format() != (Format{}) || drained.Format() != DefaultFormat() {
		t.Error("wrong formats")
	}
}

// TestFingerprint: names and weights count, the rest does not, and no two views
// share one because their names run together.
func TestFingerprint(t *testing.T) {
	of := func(nodes ...Node) uint64 {
		return mustNew(t, Format{Slots: 7, Replication: 1, Load: 1, MaxPoints: 9}, nodes).Fingerprint()
	}
	base := of(Node{Name: "a", Weight: 1}, Node{Name: "b", Weight: 1})
	if of(Node{Name: "b", Weight: 1, Address: "x"}, Node{Name: "a", Weight: 1, RunID: "y"}, Node{Name: "c"}) != base {
		t.Error("order, address, run id or a drained node changes the fingerprint")
	}
	for _, other := range [][]Node{
		{{Name: "a", Weight: 1}},
		{{Name: "a", Weight: 1}, {Name: "b", Weight: 2}},
		{{Name: "a", Weight: 1}, {Name: "c", Weight: 1}},
		{{Name: "a\x01\x01b", Weight: 1}},
		{},
	} {
		if of(other...) == base {
			t.Errorf("%v has the fingerprint of another view", other)
		}
	}
}

func TestCrowded(t *testing.T) {
	f := Format{Slots: 60, Replication: 2, Load: 1.2, MaxPoints: 9}
	if mustNew(t, f, named(3)).Crowded() {
		t.Error("20 slots a node are called crowded")
	}
	if heavy := append(named(2), Node{Name: "x", Weight: 2}); !mustNew(t, f, heavy).Crowded() {
		t.Error("15 slots a point are not called crowded")
	}
}

func TestKeys(t *testing.T) {
	for _, s := range []string{"", "a", "ns:orders:3:2", strings.Repeat("x", 3000)} {
		if KeyOf(s) != KeyOfBytes([]byte(s)) {
			t.Errorf("the two keys of %q differ", s)
		}
	}
	r := mustNew(t, DefaultFormat(), named(3))
	if k := KeyOf("a"); r.Slot(k) != int(uint64(k)%4093) {
		t.Errorf("key %d is in slot %d", k, r.Slot(k))
	}
}
