package partition

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestSpreadKey(t *testing.T) {
	orders := Queue{"ns", "orders", Activity}
	odd := Queue{"n:s", "a/b:3", Workflow}
	for _, tc := range []struct {
		id    ID
		batch int32
		key   string
		index int32
	}{
		{orders.Partition(0), 0, "ns:orders:2", 0},
		{orders.Partition(1), 0, "ns:/_sys/orders/1:2", 0},
		{orders.Partition(7), 0, "ns:/_sys/orders/7:2", 0},
		{orders.Partition(8), 0, "ns:/_sys/orders/8:2", 0},
		{orders.Partition(25), 0, "ns:/_sys/orders/25:2", 0},
		{orders.Partition(25), -1, "ns:/_sys/orders/25:2", 0},

		{orders.Partition(0), 1, "ns:orders:2", 0},
		{orders.Partition(25), 1, "ns:orders:25:2", 0},

		{orders.Partition(0), 4, "ns:orders:2", 0},
		{orders.Partition(1), 4, "ns:orders:2", 1},
		{orders.Partition(7), 4, "ns:orders:1:2", 3},
		{orders.Partition(8), 4, "ns:orders:2:2", 0},
		{orders.Partition(25), 4, "ns:orders:6:2", 1},

		{orders.Partition(0), 8, "ns:orders:2", 0},
		{orders.Partition(1), 8, "ns:orders:2", 1},
		{orders.Partition(7), 8, "ns:orders:2", 7},
		{orders.Partition(8), 8, "ns:orders:1:2", 0},
		{orders.Partition(25), 8, "ns:orders:3:2", 1},

		{odd.Partition(25), 8, "n:s:a/b:3:3:1", 1},
		{odd.Only(Sticky), 8, "n:s:a/b:3:1", 0},
	} {
		key, index := tc.id.AppendSpreadKey(nil, tc.batch)
		if string(key) != tc.key || index != tc.index {
			t.Errorf("%v, batch size %d: %q %d, want %q %d", tc.id, tc.batch, key, index, tc.key, tc.index)
		}
	}
}

// TestSpreadKeyLaws compares with the rule as a formula, and holds the root to one
// key.
func TestSpreadKeyLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, batch := drawID(t), rapid.Int32Range(1, 40).Draw(t, "batch size")
		got, index := p.AppendSpreadKey([]byte("before "), batch)
		want := fmt.Sprintf("before %s:%s:%d:%d", p.Namespace, p.Name, p.Number/batch, p.Type)
		if p.Number/batch == 0 {
			want = fmt.Sprintf("before %s:%s:%d", p.Namespace, p.Name, p.Type)
		}
		if string(got) != want || index != p.Number%batch {
			t.Fatalf("%v, batch size %d: %q %d, want %q", p, batch, got, index, want)
		}
		root := p.Partition(0)
		spread, at := root.AppendSpreadKey(nil, batch)
		if string(spread) != root.RoutingKey() || at != 0 {
			t.Fatalf("spreading moves the root from %q to %q %d", root.RoutingKey(), spread, at)
		}
	})
}

func TestGradualKey(t *testing.T) {
	q := Queue{"ns", "orders", Activity}
	for number, want := range map[int32]string{0: "ns:orders:0:2", 1: "ns:orders:1:2", 25: "ns:orders:25:2"} {
		if got := q.Partition(number).GradualKey(); got != want {
			t.Errorf("partition %d: %q, want %q", number, got, want)
		}
	}
	if got := string(q.Partition(3).AppendGradualKey([]byte("x "))); got != "x ns:orders:3:2" {
		t.Errorf("appended: %q", got)
	}
}
