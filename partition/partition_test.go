package partition

import (
	"strings"
	"testing"
)

func TestRoutingKey(t *testing.T) {
	q := Queue{Namespace: "ns", Name: "a/b:c", Type: Activity}
	for _, tc := range []struct {
		number int32
		key    string
		rpc    string
	}{
		{0, "ns:a/b:c:2", "a/b:c"},
		{1, "ns:/_sys/a/b:c/1:2", "/_sys/a/b:c/1"},
		{25, "ns:/_sys/a/b:c/25:2", "/_sys/a/b:c/25"},
	} {
		p := q.Partition(tc.number)
		if got := p.RoutingKey(); got != tc.key {
			t.Errorf("partition %d: routing key %q, want %q", tc.number, got, tc.key)
		}
		if got := p.RPCName(); got != tc.rpc {
			t.Errorf("partition %d: rpc name %q, want %q", tc.number, got, tc.rpc)
		}
	}
}

func TestValidate(t *testing.T) {
	good := Queue{Namespace: "ns", Name: "orders", Type: Activity}
	for _, tc := range []struct {
		name string
		id   ID
		want []string // each must stand in the error; none means valid
	}{
		{"good", good.Partition(3), nil},
		{"separators are legal", Queue{"n:s", "a/b:c", Workflow}.Partition(0), nil},
		{"all wrong at once", Queue{"", "", 9}.Partition(-1), []string{"namespace is empty", "queue name is empty", "task type 9", "partition -1"}},
		{"reserved", Queue{"ns", "/_sys/x", Activity}.Partition(0), []string{"reserved prefix"}},
		{"too long", Queue{"ns", strings.Repeat("x", MaxNameLength+1), Activity}.Partition(0), []string{"1001 bytes", "limit is 1000"}},
		{"longest", Queue{"ns", strings.Repeat("x", MaxNameLength), Activity}.Partition(0), nil},
		{"not utf-8", Queue{"ns", "a\xff", Activity}.Partition(0), []string{"UTF-8"}},
		{"control", Queue{"ns", "a\nb", Activity}.Partition(0), []string{"control character"}},
	} {
		err := tc.id.Validate()
		if (err == nil) != (tc.want == nil) {
			t.Errorf("%s: Validate() = %v, want %q", tc.name, err, tc.want)
			continue
		}
		for _, w := range tc.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", tc.name, err, w)
			}
		}
	}
}

// TestParent checks the tree against the rule written as a formula over the
// children: with degree d the children of p are p*d+1 .. p*d+d.
func TestParent(t *testing.T) {
	q := Queue{"ns", "q", Activity}
	for _, degree := range []int32{1, 2, 20} {
		if _, ok := q.Partition(0).Parent(degree); ok {
			t.Fatalf("degree %d: the root has a parent", degree)
		}
		for p := range int32(50) {
			checkChildren(t, q.Partition(p), degree)
		}
	}
}

// checkChildren checks that the children of p by the formula have it as their parent.
func checkChildren(t *testing.T, p ID, degree int32) {
	t.Helper()
	first := p.Number*degree + 1
	for c := first; c < first+degree; c++ {
		if got, ok := p.Partition(c).Parent(degree); !ok || got != p {
			t.Fatalf("degree %d: parent of %d is %v, want %d", degree, c, got, p.Number)
		}
	}
}

func TestTaskTypeText(t *testing.T) {
	for typ := Workflow; typ <= Dispatch; typ++ {
		got, err := ParseTaskType(strings.ToUpper(typ.String()))
		if err != nil || got != typ {
			t.Errorf("ParseTaskType(%q) = %v, %v", typ, got, err)
		}
	}
	if _, err := ParseTaskType("query"); err == nil {
		t.Error("ParseTaskType accepts an unknown name")
	}
}

func TestCountsValid(t *testing.T) {
	for c, want := range map[Counts]bool{
		{}:                  false,
		{Read: 1, Write: 1}: true,
		{Read: 4, Write: 2}: true,
		{Read: 2, Write: 4}: false,
		{Read: 4}:           false,
	} {
		if c.Valid() != want {
			t.Errorf("%+v.Valid() = %v", c, !want)
		}
	}
}
