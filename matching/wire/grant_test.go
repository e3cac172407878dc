package wire

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// The columnar example of the package documentation.
func ExampleEncodeColumns() {
	at := partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}.Partition(2)
	grant := func(seq uint64, delivery uint32, added task.Micros, payload string) Granted {
		id := task.MakeID(8, seq)
		return Granted{
			Store: task.StoreID{1}, Partition: at, Attempt: 1, Lease: 30 * time.Second,
			Grant: task.Grant{ID: id, Delivery: delivery, Epoch: 8},
			Task:  &task.Task{ID: id, Payload: []byte(payload), Priority: task.DefaultPriority, AddedAt: added},
		}
	}
	granted := []Granted{grant(1, 1, 1_000_000, "a"), grant(2, 2, 1_000_250, "b"), grant(5, 1, 1_000_200, "c")}
	granted[1].Task.Priority, granted[1].Attempt = 1, 2

	for _, b := range EncodeColumns(granted) {
		fmt.Printf("epoch %d, lease %v\n", b.GetEpoch(), b.GetLeaseDuration().AsDuration())
		fmt.Printf("payloads   %s\n", b.GetPayloads())
		fmt.Printf("ids        8<<40 + %d %d %d\n", b.GetIds()[0]-8<<40, b.GetIds()[1]-8<<40, b.GetIds()[2]-8<<40)
		fmt.Printf("deliveries %d\n", b.GetDeliveries())
		fmt.Printf("added_us   %d\n", b.GetAddedUs())
		for _, d := range b.GetDetails() {
			fmt.Printf("detail     index %d: priority %d, attempt %d\n", d.GetIndex(), d.GetPriority(), d.GetAttempt())
		}
	}
	// Output:
	// epoch 8, lease 30s
	// payloads   [a b c]
	// ids        8<<40 + 1 2 5
	// deliveries [1 2 1]
	// added_us   [1000000 250 -50]
	// detail     index 1: priority 1, attempt 2
}

// drawGranted draws a grant as a worker would see it.
func drawGranted(t *rapid.T) Granted {
	id := task.MakeID(task.Epoch(rapid.Uint64Range(1, 3).Draw(t, "id epoch")), rapid.Uint64Range(1, 1<<40-1).Draw(t, "seq"))
	g := Granted{
		Store:     task.StoreID{rapid.Byte().Draw(t, "store") % 2},
		Partition: orders.Partition(rapid.Int32Range(0, 2).Draw(t, "partition")),
		Grant: task.Grant{
			ID: id, Delivery: rapid.Uint32Min(1).Draw(t, "delivery"), Epoch: task.Epoch(rapid.Uint64Range(1, 2).Draw(t, "epoch")),
		},
		Attempt: rapid.Uint32Range(1, 3).Draw(t, "attempt"),
		Lease:   time.Duration(rapid.Int64Range(1, 3).Draw(t, "lease")) * time.Second,
	}
	g.Task = &task.Task{
		ID:          id,
		Payload:     rapid.SliceOf(rapid.Byte()).Draw(t, "payload"),
		Priority:    task.Priority(rapid.Uint8Range(1, 5).Draw(t, "priority")),
		FairnessKey: rapid.SampledFrom([]string{"", "k"}).Draw(t, "key"),
		AddedAt:     task.Micros(rapid.Int64Range(1, math.MaxInt64/2000).Draw(t, "added")),
		ExpiresAt:   task.Micros(rapid.Int64Range(0, 1).Draw(t, "expires")),
		Durability:  task.Durability(rapid.Uint8Range(0, 1).Draw(t, "durability")),
		Attempts:    g.Attempt - 1,
		Deliveries:  g.Grant.Delivery,
	}
	if rapid.Bool().Draw(t, "with headers") {
		g.Task.Headers = map[string]string{"a": rapid.String().Draw(t, "header")}
	}
	return g
}

// same compares grants; an empty payload may come back as nil.
func same(a, b Granted) bool {
	at, bt := *a.Task, *b.Task
	if len(at.Payload) == 0 && len(bt.Payload) == 0 {
		at.Payload, bt.Payload = nil, nil
	}
	a.Task, b.Task = nil, nil
	return reflect.DeepEqual(a, b) && reflect.DeepEqual(at, bt)
}

// copied sends a message through its bytes, as a connection does.
func copied[M proto.Message](t *rapid.T, in, out M) M {
	b, err := proto.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTokensRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		granted := rapid.SliceOfN(rapid.Custom(drawGranted), 0, 8).Draw(t, "granted")
		for i, m := range EncodeTokens(granted) {
			got, err := DecodeToken(copied(t, m, &matchingpb.TaskGrant{}))
			if err != nil || !same(got, granted[i]) {
				t.Fatalf("got %+v %+v, %v\nwant %+v %+v", got, got.Task, err, granted[i], granted[i].Task)
			}
			if id, err := DecodePartition("partition", m.GetPartition()); err != nil || id != granted[i].Partition || m.GetId() != uint64(granted[i].Grant.ID) {
				t.Fatalf("the plain fields say %v, %d", id, m.GetId())
			}
		}
	})
}

// TestColumnsRoundTrip compares with the obvious grouping: every grant comes
// back once, those of one batch in their order.
func TestColumnsRoundTrip(t *testing.T) {
	type key struct {
		store task.StoreID
		id    partition.ID
		epoch task.Epoch
	}
	keyOf := func(g Granted) key { return key{g.Store, g.Partition, g.Grant.Epoch} }
	rapid.Check(t, func(t *rapid.T) {
		granted := rapid.SliceOfN(rapid.Custom(drawGranted), 0, 12).Draw(t, "granted")
		want := map[key][]Granted{}
		for _, g := range granted {
			want[keyOf(g)] = append(want[keyOf(g)], g)
		}
		batches := EncodeColumns(granted)
		if len(batches) != len(want) {
			t.Fatalf("%d batches for %d partitions and epochs", len(batches), len(want))
		}
		for _, b := range batches {
			got, err := DecodeColumns(copied(t, b, &matchingpb.GrantBatch{}))
			if err != nil || len(got) == 0 || len(got) != len(want[keyOf(got[0])]) {
				t.Fatalf("got %+v, %v", got, err)
			}
			for i, w := range want[keyOf(got[0])] {
				if !same(got[i], w) {
					t.Fatalf("got %+v %+v\nwant %+v %+v", got[i], got[i].Task, w, w.Task)
				}
			}
		}
	})
}

func TestColumnsThatContradict(t *testing.T) {
	good := func() *matchingpb.GrantBatch {
		g := Granted{Partition: orders.Partition(1), Grant: task.Grant{ID: 1, Delivery: 1, Epoch: 1}, Attempt: 2, Task: &task.Task{ID: 1}}
		return EncodeColumns([]Granted{g})[0]
	}
	if _, err := DecodeColumns(good()); err != nil {
		t.Fatal(err)
	}
	for name, breakIt := range map[string]func(*matchingpb.GrantBatch){
		"partition":  func(b *matchingpb.GrantBatch) { b.Partition = nil },
		"store_id":   func(b *matchingpb.GrantBatch) { b.StoreId = b.GetStoreId()[1:] },
		"payloads":   func(b *matchingpb.GrantBatch) { b.Payloads = nil },
		"deliveries": func(b *matchingpb.GrantBatch) { b.Deliveries = append(b.Deliveries, 1) },
		"added_us":   func(b *matchingpb.GrantBatch) { b.AddedUs = nil },
		"details":    func(b *matchingpb.GrantBatch) { b.Details[0].Index = 1 },
	} {
		b := good()
		breakIt(b)
		if _, err := DecodeColumns(b); err == nil || task.ReasonOf(err) != task.Internal || !strings.Contains(err.Error(), name) {
			t.Errorf("%s broken: error %v", name, err)
		}
	}
	if _, err := DecodeToken(&matchingpb.TaskGrant{Token: []byte("x")}); !errors.Is(err, task.ErrBadToken) {
		t.Errorf("a grant with a bad token: %v", err)
	}
}

func TestRefsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		granted := rapid.SliceOfN(rapid.Custom(drawGranted), 1, 8).Draw(t, "granted")
		want := RefsFor(granted[0].Token())
		for _, g := range granted {
			if token := g.Token(); want.Takes(token) {
				want.Add(token)
			}
		}
		got, err := decoder().Refs("batches[0]", copied(t, want.Encode(), &matchingpb.GrantRefs{}))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, %v, want %+v", got, err, want)
		}
		if got.Grant(0) != granted[0].Grant || got.Len() != want.Len() {
			t.Fatalf("the first of %d grants is %+v, want %+v", got.Len(), got.Grant(0), granted[0].Grant)
		}
	})
}

func TestRefsTakeTheirLike(t *testing.T) {
	token := task.Token{Store: task.StoreID{1}, Partition: orders.Partition(1), Grant: task.Grant{ID: 5, Delivery: 1, Epoch: 2}}
	r := RefsFor(token)
	for name, change := range map[string]func(*task.Token){
		"store":     func(t *task.Token) { t.Store[0]++ },
		"partition": func(t *task.Token) { t.Partition.Number++ },
		"epoch":     func(t *task.Token) { t.Grant.Epoch++ },
	} {
		other := token
		change(&other)
		if r.Takes(other) {
			t.Errorf("takes a grant of another %s", name)
		}
	}
	if !r.Takes(token) {
		t.Error("does not take its own")
	}
}

func TestBadRefs(t *testing.T) {
	for name, tc := range map[string]struct {
		breakIt func(*matchingpb.GrantRefs)
		want    string
	}{
		"good":         {func(*matchingpb.GrantRefs) {}, ""},
		"whole queue":  {func(m *matchingpb.GrantRefs) { m.Partition.Partition = nil }, "b.partition.partition"},
		"store":        {func(m *matchingpb.GrantRefs) { m.StoreId = nil }, "b.store_id"},
		"no epoch":     {func(m *matchingpb.GrantRefs) { m.Epoch = 0 }, "b.epoch"},
		"epoch":        {func(m *matchingpb.GrantRefs) { m.Epoch = 1 << 24 }, "b.epoch"},
		"deliveries":   {func(m *matchingpb.GrantRefs) { m.Deliveries = m.GetDeliveries()[1:] }, "b.deliveries"},
		"id 0":         {func(m *matchingpb.GrantRefs) { m.Ids[1] = 0 }, "b.ids[1]"},
		"delivery 0":   {func(m *matchingpb.GrantRefs) { m.Deliveries[0] = 0 }, "b.ids[0]"},
		"too many":     {func(m *matchingpb.GrantRefs) { m.Ids, m.Deliveries = append(m.Ids, 3), append(m.Deliveries, 1) }, "b.ids"},
		"nothing said": {func(m *matchingpb.GrantRefs) { proto.Reset(m) }, "b.store_id b.partition b.epoch"},
	} {
		r := Refs{Store: task.StoreID{1}, Partition: orders.Partition(0), Epoch: 1, IDs: []task.ID{1, 2}, Deliveries: []uint32{1, 1}}
		m := r.Encode()
		tc.breakIt(m)
		d := decoder()
		d.Limits.BatchItems = 2
		_, err := d.Refs("b", m)
		if got := strings.Join(badFields(t, err), " "); got != tc.want {
			t.Errorf("%s: bad fields %q, want %q", name, got, tc.want)
		}
	}
}

func TestTokenOfARequest(t *testing.T) {
	want := task.Token{Store: task.StoreID{1}, Partition: orders.Partition(1), Grant: task.Grant{ID: 5, Delivery: 1, Epoch: 2}}
	if got, err := ParseToken(want.Append(nil)); err != nil || got != want {
		t.Errorf("got %+v, %v", got, err)
	}
	_, err := ParseToken([]byte("garbage"))
	if got := badFields(t, err); !reflect.DeepEqual(got, []string{"token"}) {
		t.Errorf("bad fields %q", got)
	}
}

func FuzzDecodeColumns(f *testing.F) {
	for attempt := range uint32(2) {
		g := Granted{Partition: orders.Partition(1), Grant: task.Grant{ID: 1, Delivery: 1, Epoch: 1}, Attempt: attempt, Task: &task.Task{ID: 1, Payload: []byte("p")}}
		b, err := proto.Marshal(EncodeColumns([]Granted{g, g})[0])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m matchingpb.GrantBatch
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		got, err := DecodeColumns(&m)
		if err != nil {
			return
		}
		if len(got) != len(m.GetIds()) {
			t.Fatalf("%d grants of %d ids", len(got), len(m.GetIds()))
		}
		for _, g := range got {
			if g.Task == nil || g.Attempt == 0 || g.Task.Priority.Level() < 0 || g.Task.Priority.Level() >= task.Priorities {
				t.Fatalf("a grant without sense: %+v", g)
			}
		}
	})
}

func FuzzDecodeAddBatch(f *testing.F) {
	b, err := proto.Marshal(&matchingpb.AddBatch{
		TaskQueue: EncodeQueue(orders), Payloads: [][]byte{nil, []byte("p")},
		Exceptions: []*matchingpb.ItemOptions{{Index: 1, Options: delayed(time.Second)}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var m matchingpb.AddBatch
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		got, err := decoder().AddBatch(&m)
		if err != nil {
			return
		}
		refused := 0
		for _, one := range got.Tasks {
			if one == nil {
				refused++
			}
		}
		if len(got.Tasks) != len(m.GetPayloads()) || refused != len(got.Refused) {
			t.Fatalf("%d payloads, %d tasks, %d nil, %d errors", len(m.GetPayloads()), len(got.Tasks), refused, len(got.Refused))
		}
	})
}
