package partition

import (
	"strings"
	"testing"
)

func TestKindText(t *testing.T) {
	for k := Normal; k <= Control; k++ {
		if got, err := ParseKind(strings.ToUpper(k.String())); err != nil || got != k {
			t.Errorf("ParseKind(%q) = %v, %v", k, got, err)
		}
	}
	if got, err := ParseKind(""); err != nil || got != Normal {
		t.Errorf("ParseKind of nothing = %v, %v", got, err)
	}
	if _, err := ParseKind("slippery"); err == nil || !strings.Contains(err.Error(), "normal, sticky, control") {
		t.Errorf("error %v does not say what would be right", err)
	}
	if got := Kind(7).String(); got != "kind(7)" {
		t.Errorf("an unknown kind is called %q", got)
	}
}

func TestKindOfPartition(t *testing.T) {
	q := Queue{"ns", "worker-1", Activity}
	for _, tc := range []struct {
		id   ID
		want string // stands in the error; empty means valid
	}{
		{q.Partition(3), ""},
		{q.Only(Sticky), ""},
		{q.Only(Control), ""},
		{ID{Queue: q, Number: 1, Kind: Sticky}, "partition 1 of a sticky queue"},
		{ID{Queue: q, Number: 1, Kind: Control}, "partition 1 of a control queue"},
		{ID{Queue: q, Kind: 3}, "kind 3"},
	} {
		err := tc.id.Validate()
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v %v: %v, want %q", tc.id, tc.id.Kind, err, tc.want)
		}
	}
	if q.Only(Sticky) == q.Partition(0) {
		t.Error("a sticky partition is taken for a normal one of the same name")
	}
	if q.Only(Sticky).RoutingKey() != q.Partition(0).RoutingKey() {
		t.Error("the kind is part of the routing key")
	}
	if !Normal.Partitioned() || Sticky.Partitioned() || Control.Partitioned() {
		t.Error("only normal queues have several partitions")
	}
}

func TestValidateNormal(t *testing.T) {
	q := Queue{"ns", "worker-1", Activity}
	for _, tc := range []struct {
		id   ID
		name string
		want string
	}{
		{q.Partition(0), "", ""},
		{q.Only(Sticky), "", ""},
		{q.Only(Sticky), "orders", ""},
		{q.Only(Sticky), "/_sys/orders/1", "reserved prefix"},
		{q.Only(Control), "orders", "control queue"},
		{q.Partition(0), "orders", "normal queue"},
	} {
		err := tc.id.ValidateNormal(tc.name)
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%v with %q: %v, want %q", tc.id, tc.name, err, tc.want)
		}
	}
}
