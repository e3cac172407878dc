package row

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/matching/task"
)

// anyTask draws a task with any combination of fields.
func anyTask(t *rapid.T) *task.Task {
	text := rapid.StringN(0, 10, 40)
	micros := func(name string) task.Micros {
		return task.Micros(rapid.Int64Range(0, 1<<50).Draw(t, name))
	}
	span := func(name string) time.Duration {
		return time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, name))
	}
	got := &task.Task{
		ID:             task.ID(rapid.Uint64Min(1).Draw(t, "id")),
		Payload:        rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "payload"),
		Headers:        rapid.MapOfN(text, text, 0, 4).Draw(t, "headers"),
		Priority:       task.Priority(rapid.Uint8Range(1, 5).Draw(t, "priority")),
		FairnessKey:    text.Draw(t, "key"),
		FairnessWeight: rapid.Float32().Draw(t, "weight"),
		AddedAt:        micros("added"),
		NotBefore:      micros("not before"),
		ExpiresAt:      micros("expires"),
		MaxAttempts:    rapid.Uint32().Draw(t, "max attempts"),
		Retry: task.RetryPolicy{
			Initial: span("initial"), Max: span("max"),
			Factor: rapid.Float64().Draw(t, "factor"), Jitter: rapid.Float64().Draw(t, "jitter"),
		},
		LeaseDuration: span("lease"),
		Durability:    task.Durability(rapid.Uint8Range(0, 1).Draw(t, "durability")),
		RequestID:     text.Draw(t, "request"),
		Attempts:      rapid.Uint32().Draw(t, "attempts"),
		Deliveries:    rapid.Uint32().Draw(t, "deliveries"),
		LastFailure:   text.Draw(t, "failure"),
	}
	if len(got.Payload) == 0 {
		got.Payload = nil // an empty payload reads back as nil
	}
	if len(got.Headers) == 0 {
		got.Headers = nil
	}
	return got
}

func anyLease(t *rapid.T, id task.ID) Lease {
	return Lease{
		ID:       id,
		Priority: task.Priority(rapid.Uint8Range(1, 5).Draw(t, "lease priority")),
		Due:      task.Micros(rapid.Int64Range(0, 1<<50).Draw(t, "due")),
		Delivery: rapid.Uint32().Draw(t, "delivery"),
		Epoch:    task.Epoch(rapid.Uint64Range(0, uint64(task.MaxEpoch)).Draw(t, "epoch")),
		Attempts: rapid.Uint32().Draw(t, "lease attempts"),
		Duration: time.Duration(rapid.Int64Range(0, 1<<50).Draw(t, "duration")),
		Live:     rapid.Bool().Draw(t, "live"),
		Identity: rapid.StringN(0, 10, 40).Draw(t, "identity"),
	}
}

func TestCodecRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Task{Task: anyTask(t)}
		if rapid.Bool().Draw(t, "folded") {
			l := anyLease(t, want.Task.ID)
			want.Folded = &l
		}
		got, err := DecodeTask(want.Task.ID, AppendTask(nil, want))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("task reads back as %+v, %v, want %+v", got, err, want)
		}
		dead := DeadTask{Task: want.Task, Reason: "no more attempts", At: 77}
		gotDead, err := DecodeDead(dead.Task.ID, AppendDead(nil, dead))
		if err != nil || !reflect.DeepEqual(gotDead, dead) {
			t.Fatalf("dead task reads back as %+v, %v, want %+v", gotDead, err, dead)
		}
	})
}

func TestUnknownFieldsAreSkipped(t *testing.T) {
	want := &task.Task{ID: 5, Payload: []byte("p"), Priority: 3}
	b := appendString(nil, 1000, "from a newer version")
	b = append(b, AppendTask(nil, Task{Task: want})...)
	b = appendFloat(b, 1001, 1.5)
	got, err := DecodeTask(5, b)
	if err != nil || !reflect.DeepEqual(got.Task, want) {
		t.Errorf("DecodeTask = %+v, %v", got.Task, err)
	}
}

func FuzzDecodeTask(f *testing.F) {
	lease := Lease{ID: 5, Delivery: 1, Live: true, Identity: "w"}
	f.Add(AppendTask(nil, Task{Task: &task.Task{Payload: []byte("p"), Headers: map[string]string{"k": "v"}}, Folded: &lease}))
	f.Add([]byte{0x0a, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := DecodeTask(5, b)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("error %v does not match ErrCorrupt", err)
			}
			return
		}
		once := AppendTask(nil, got)
		again, err := DecodeTask(5, once)
		if err != nil || !bytes.Equal(once, AppendTask(nil, again)) {
			t.Fatalf("%x does not settle: %+v, %v", b, again, err)
		}
	})
}

func BenchmarkCodec(b *testing.B) {
	r := Task{Task: &task.Task{ID: 9, Payload: make([]byte, 256), Priority: 3, AddedAt: 1_800_000_000_000_000}}
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendTask(buf[:0], r)
		if _, err := DecodeTask(9, buf); err != nil {
			b.Fatal(err)
		}
	}
}
