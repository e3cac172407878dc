package wire

import (
	"reflect"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

func sampleTask() *task.Task {
	return &task.Task{
		ID: task.MakeID(3, 9), Payload: []byte("p"), Headers: map[string]string{"h": "v"}, Priority: 2, FairnessKey: "k", FairnessWeight: 1.5,
		AddedAt: now, NotBefore: now.Add(time.Second), ExpiresAt: now.Add(time.Hour), MaxAttempts: 4,
		Retry:         task.RetryPolicy{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.1},
		LeaseDuration: time.Minute, Durability: task.HandOff, RequestID: "r", Attempts: 2, Deliveries: 5, LastFailure: "boom",
	}
}

func TestDescriptionRoundTrip(t *testing.T) {
	plain := &task.Task{ID: 7, Priority: task.DefaultPriority, FairnessWeight: 1, AddedAt: now, Payload: []byte("p")}
	for _, want := range []Description{
		{Partition: orders.Partition(0), Task: plain, State: Ready},
		{Partition: orders.Partition(2), Task: sampleTask(), State: Scheduled, Due: now.Add(time.Second)},
		{Partition: orders.Partition(2), Task: sampleTask(), State: Leased, Lease: &Lease{
			Identity: "worker", Grant: task.Grant{ID: task.MakeID(3, 9), Delivery: 5, Epoch: 4}, Duration: time.Minute, Remaining: time.Second,
		}},
		{Partition: orders.Partition(2), Task: sampleTask(), State: Dead, Dead: &Death{Reason: "attempts used up", At: now}},
	} {
		got, err := DecodeDescription(want.Encode(true))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v %+v, %v\nwant %+v %+v", got, got.Task, err, want, want.Task)
		}
		bare := want.Encode(false)
		if bare.GetPayload() != nil || bare.GetPayloadSize() != 1 {
			t.Errorf("without payload: %v", bare)
		}
	}
	if _, err := DecodeDescription(&matchingpb.TaskDescription{Id: 1}); task.ReasonOf(err) != task.Internal {
		t.Errorf("a description without a partition: %v", err)
	}
}

func TestOwnershipRoundTrip(t *testing.T) {
	for _, want := range []task.Ownership{{}, {Holder: task.Holder{Node: "n", RunID: "r", Address: "a:1"}, Epoch: 3, ViewFingerprint: 1 << 63}} {
		if got := DecodeOwnership(EncodeOwnership(want)); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
