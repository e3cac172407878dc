package wire

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

const now = task.Micros(1_700_000_000_000_000)

var orders = partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Activity}

func decoder() Decoder { return Decoder{Limits: Limits{}.WithDefaults(), Now: now} }

// badFields returns the fields that an INVALID error names, in order.
func badFields(t *testing.T, err error) []string {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *task.Error
	if !errors.As(err, &e) || e.Reason != task.Invalid {
		t.Fatalf("error %v is not INVALID", err)
	}
	var fields []string
	for _, v := range e.Violations {
		fields = append(fields, v.Field)
		if v.Description == "" || !strings.Contains(e.Message, v.Description) {
			t.Errorf("the message %q lacks %q of %s", e.Message, v.Description, v.Field)
		}
	}
	return fields
}

func TestAddTaskWhole(t *testing.T) {
	in := &matchingpb.AddTaskRequest{
		TaskQueue: EncodePartition(orders.Partition(2)),
		Payload:   []byte("p"),
		Options: &matchingpb.TaskOptions{
			Headers: map[string]string{"traceparent": "00-1"}, Priority: 1, FairnessKey: "k", FairnessWeight: 2,
			Start:       &matchingpb.TaskOptions_Delay{Delay: durationpb.New(time.Minute)},
			Expiry:      durationpb.New(time.Hour),
			MaxAttempts: 7,
			RetryPolicy: &matchingpb.RetryPolicy{
				InitialInterval: durationpb.New(time.Second), BackoffCoefficient: 2, MaximumInterval: durationpb.New(time.Minute), Jitter: 0.5,
			},
			LeaseDuration: durationpb.New(5 * time.Second), Durability: matchingpb.Durability_DURABILITY_HAND_OFF, RequestId: "r",
		},
	}
	target, got, err := decoder().AddTask(in)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Target{Queue: orders, Number: 2, IsPartition: true}); target != want {
		t.Errorf("target %+v, want %+v", target, want)
	}
	want := &task.Task{
		Payload: []byte("p"), Headers: map[string]string{"traceparent": "00-1"}, Priority: 1, FairnessKey: "k", FairnessWeight: 2,
		AddedAt: now, NotBefore: now.Add(time.Minute), ExpiresAt: now.Add(time.Hour), MaxAttempts: 7,
		Retry:         task.RetryPolicy{Initial: time.Second, Max: time.Minute, Factor: 2, Jitter: 0.5},
		LeaseDuration: 5 * time.Second, Durability: task.HandOff, RequestID: "r",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	// What a description shows of it is what was asked for, the delay as a time.
	in.Options.Start = &matchingpb.TaskOptions_NotBefore{NotBefore: timestamppb.New(now.Add(time.Minute).Time())}
	if shown := EncodeOptions(got); !proto.Equal(shown, in.GetOptions()) {
		t.Errorf("shown as %v, want %v", shown, in.GetOptions())
	}
}

// TestDelayOfNothing: a task that may start now is not a scheduled one.
func TestDelayOfNothing(t *testing.T) {
	for d, want := range map[time.Duration]task.Micros{0: 0, time.Nanosecond: 0, time.Microsecond: now + 1} {
		_, got, err := decoder().AddTask(&matchingpb.AddTaskRequest{TaskQueue: EncodeQueue(orders), Options: delayed(d)})
		if err != nil || got.NotBefore != want {
			t.Errorf("delay %v: not before %d, %v, want %d", d, got.NotBefore, err, want)
		}
	}
}

func TestAddTaskDefaults(t *testing.T) {
	target, got, err := decoder().AddTask(&matchingpb.AddTaskRequest{
		TaskQueue: &matchingpb.TaskQueuePartition{Namespace: "ns", Name: "orders"},
		Options:   &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_NotBefore{NotBefore: timestamppb.New(now.Add(-time.Hour).Time())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if target != (Target{Queue: orders}) || target.Partition() != orders.Partition(0) {
		t.Errorf("target %+v: want the whole queue, of type activity", target)
	}
	if want := (&task.Task{Priority: 3, FairnessWeight: 1, AddedAt: now}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestOptionsTable goes through every way in which options can be bad.
func TestOptionsTable(t *testing.T) {
	day := 24 * time.Hour
	for _, tc := range []struct {
		name string
		o    *matchingpb.TaskOptions
		want string // the bad field, "" for good options
	}{
		{"none", nil, ""},
		{"first priority", &matchingpb.TaskOptions{Priority: 1}, ""},
		{"last priority", &matchingpb.TaskOptions{Priority: 5}, ""},
		{"priority too high", &matchingpb.TaskOptions{Priority: 6}, "options.priority"},
		{"priority negative", &matchingpb.TaskOptions{Priority: -1}, "options.priority"},
		{"priority 256+3", &matchingpb.TaskOptions{Priority: 259}, "options.priority"},
		{"headers at the limit", &matchingpb.TaskOptions{Headers: map[string]string{"k": strings.Repeat("v", 16<<10-1)}}, ""},
		{"headers too long", &matchingpb.TaskOptions{Headers: map[string]string{"k": strings.Repeat("v", 16<<10)}}, "options.headers"},
		{"header name not UTF-8", &matchingpb.TaskOptions{Headers: map[string]string{"\xff": "v"}}, "options.headers"},
		{"header not UTF-8", &matchingpb.TaskOptions{Headers: map[string]string{"k": "\xff"}}, "options.headers"},
		{"fairness key", &matchingpb.TaskOptions{FairnessKey: strings.Repeat("k", 65)}, "options.fairness_key"},
		{"fairness key not UTF-8", &matchingpb.TaskOptions{FairnessKey: "\xff"}, "options.fairness_key"},
		{"request id not UTF-8", &matchingpb.TaskOptions{RequestId: "\xff"}, "options.request_id"},
		{"weight low", &matchingpb.TaskOptions{FairnessWeight: 0.0001}, "options.fairness_weight"},
		{"weight high", &matchingpb.TaskOptions{FairnessWeight: 1001}, "options.fairness_weight"},
		{"weight not a number", &matchingpb.TaskOptions{FairnessWeight: float32(math.NaN())}, "options.fairness_weight"},
		{"request id", &matchingpb.TaskOptions{RequestId: strings.Repeat("r", 257)}, "options.request_id"},
		{"attempts", &matchingpb.TaskOptions{MaxAttempts: -1}, "options.max_attempts"},
		{"durability", &matchingpb.TaskOptions{Durability: 3}, "options.durability"},
		{"longest delay", delayed(365 * day), ""},
		{"delay too long", delayed(365*day + time.Microsecond), "options.delay"},
		{"delay negative", delayed(-time.Second), "options.delay"},
		{"delay malformed", &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_Delay{Delay: &durationpb.Duration{Seconds: 1, Nanos: -1}}}, "options.delay"},
		{"not before too late", &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_NotBefore{NotBefore: timestamppb.New(now.Add(366 * day).Time())}}, "options.not_before"},
		{"not before malformed", &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_NotBefore{NotBefore: &timestamppb.Timestamp{Nanos: -1}}}, "options.not_before"},
		{"expiry", &matchingpb.TaskOptions{Expiry: durationpb.New(time.Microsecond)}, ""},
		{"longest expiry", &matchingpb.TaskOptions{Expiry: durationpb.New(math.MaxInt64)}, ""},
		{"expiry 0", &matchingpb.TaskOptions{Expiry: durationpb.New(0)}, "options.expiry"},
		{"expiry negative", &matchingpb.TaskOptions{Expiry: durationpb.New(-1)}, "options.expiry"},
		{"expiry before start", withExpiry(delayed(time.Hour), time.Hour), "options.expiry"},
		{"expiry after start", withExpiry(delayed(time.Hour), time.Hour+time.Microsecond), ""},
		{"shortest lease", &matchingpb.TaskOptions{LeaseDuration: durationpb.New(time.Second)}, ""},
		{"longest lease", &matchingpb.TaskOptions{LeaseDuration: durationpb.New(12 * time.Hour)}, ""},
		{"lease too short", &matchingpb.TaskOptions{LeaseDuration: durationpb.New(time.Second - 1)}, "options.lease_duration"},
		{"lease too long", &matchingpb.TaskOptions{LeaseDuration: durationpb.New(12*time.Hour + 1)}, "options.lease_duration"},
		{"lease 0", &matchingpb.TaskOptions{LeaseDuration: durationpb.New(0)}, "options.lease_duration"},
		{"retry initial", retrying(&matchingpb.RetryPolicy{InitialInterval: durationpb.New(-1)}), "options.retry_policy.initial_interval"},
		{"retry max", retrying(&matchingpb.RetryPolicy{MaximumInterval: durationpb.New(366 * day)}), "options.retry_policy.maximum_interval"},
		{"retry max below initial", retrying(&matchingpb.RetryPolicy{InitialInterval: durationpb.New(2), MaximumInterval: durationpb.New(1)}), "options.retry_policy.maximum_interval"},
		{"retry factor low", retrying(&matchingpb.RetryPolicy{BackoffCoefficient: 0.5}), "options.retry_policy.backoff_coefficient"},
		{"retry factor endless", retrying(&matchingpb.RetryPolicy{BackoffCoefficient: math.Inf(1)}), "options.retry_policy.backoff_coefficient"},
		{"retry jitter", retrying(&matchingpb.RetryPolicy{Jitter: 1.1}), "options.retry_policy.jitter"},
		{"retry jitter not a number", retrying(&matchingpb.RetryPolicy{Jitter: math.NaN()}), "options.retry_policy.jitter"},
	} {
		_, _, err := decoder().AddTask(&matchingpb.AddTaskRequest{TaskQueue: EncodeQueue(orders), Options: tc.o})
		if got := strings.Join(badFields(t, err), " "); got != tc.want {
			t.Errorf("%s: bad fields %q, want %q (%v)", tc.name, got, tc.want, err)
		}
	}
}

func delayed(d time.Duration) *matchingpb.TaskOptions {
	return &matchingpb.TaskOptions{Start: &matchingpb.TaskOptions_Delay{Delay: durationpb.New(d)}}
}

func withExpiry(o *matchingpb.TaskOptions, d time.Duration) *matchingpb.TaskOptions {
	o.Expiry = durationpb.New(d)
	return o
}

func retrying(p *matchingpb.RetryPolicy) *matchingpb.TaskOptions {
	return &matchingpb.TaskOptions{RetryPolicy: p}
}

func TestAllBadFieldsAtOnce(t *testing.T) {
	d := decoder()
	d.Limits.PayloadBytes = 3
	minus := int32(-2)
	_, _, err := d.AddTask(&matchingpb.AddTaskRequest{
		TaskQueue: &matchingpb.TaskQueuePartition{Name: "/_sys/x", Type: 258, Partition: &minus},
		Payload:   []byte("four"),
		Options:   &matchingpb.TaskOptions{Priority: 9, MaxAttempts: -1, LeaseDuration: durationpb.New(1)},
	})
	want := []string{
		"task_queue.type", "task_queue.namespace", "task_queue.name", "task_queue.partition",
		"options.priority", "options.lease_duration", "options.max_attempts", "payload",
	}
	if got := badFields(t, err); !reflect.DeepEqual(got, want) {
		t.Errorf("bad fields %q, want %q", got, want)
	}
	for _, name := range []string{"is 4 bytes long, the limit is 3 (" + SettingPayloadBytes + ")", "reserved prefix"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error %q does not say %q", err, name)
		}
	}
}

func TestTargets(t *testing.T) {
	whole, root := EncodeQueue(orders), EncodePartition(orders.Partition(0))
	for name, tc := range map[string]struct {
		read func(string, *matchingpb.TaskQueuePartition) error
		in   *matchingpb.TaskQueuePartition
		want string
	}{
		"queue, whole":         {queueError, whole, ""},
		"queue, partition":     {queueError, root, "q.partition"},
		"queue, missing":       {queueError, nil, "q"},
		"partition, whole":     {partitionError, whole, "q.partition"},
		"partition, root":      {partitionError, root, ""},
		"partition, missing":   {partitionError, nil, "q"},
		"either, whole":        {targetError, whole, ""},
		"either, root":         {targetError, root, ""},
		"either, without name": {targetError, &matchingpb.TaskQueuePartition{Namespace: "ns"}, "q.name"},
	} {
		if got := strings.Join(badFields(t, tc.read("q", tc.in)), " "); got != tc.want {
			t.Errorf("%s: bad fields %q, want %q", name, got, tc.want)
		}
	}
	for _, target := range []Target{{Queue: orders}, {Queue: orders, IsPartition: true}, {Queue: orders, Number: 9, IsPartition: true}} {
		if got, err := DecodeTarget("q", target.Encode()); err != nil || got != target {
			t.Errorf("%+v came back as %+v, %v", target, got, err)
		}
	}
}

func queueError(field string, p *matchingpb.TaskQueuePartition) error {
	_, err := DecodeQueue(field, p)
	return err
}

func partitionError(field string, p *matchingpb.TaskQueuePartition) error {
	_, err := DecodePartition(field, p)
	return err
}

func targetError(field string, p *matchingpb.TaskQueuePartition) error {
	_, err := DecodeTarget(field, p)
	return err
}

func TestAddBatch(t *testing.T) {
	d := decoder()
	d.Limits.PayloadBytes = 5
	got, err := d.AddBatch(&matchingpb.AddBatch{
		TaskQueue: EncodeQueue(orders),
		Common:    &matchingpb.TaskOptions{Priority: 2, Headers: map[string]string{"h": "1"}},
		Payloads:  [][]byte{[]byte("a"), []byte("b"), []byte("too long"), []byte("d"), []byte("e")},
		Exceptions: []*matchingpb.ItemOptions{
			{Index: 1, Options: &matchingpb.TaskOptions{Priority: 5, RequestId: "r"}},
			{Index: 3, Options: &matchingpb.TaskOptions{Priority: 77}},
		},
		Counts:         &matchingpb.PartitionCounts{Read: 4, Write: 4},
		EstimatedTasks: 20,
	})
	if err != nil {
		t.Fatal(err)
	}
	common := task.Task{Priority: 2, Headers: map[string]string{"h": "1"}, FairnessWeight: 1, AddedAt: now}
	first, last := common, common
	first.Payload, last.Payload = []byte("a"), []byte("e")
	// An exception replaces the common options whole: no headers.
	second := &task.Task{Payload: []byte("b"), Priority: 5, RequestID: "r", FairnessWeight: 1, AddedAt: now}
	if want := []*task.Task{&first, second, nil, nil, &last}; !reflect.DeepEqual(got.Tasks, want) {
		t.Errorf("tasks %+v, want %+v", got.Tasks, want)
	}
	if len(got.Refused) != 2 || got.Refused[0].GetIndex() != 2 || got.Refused[1].GetIndex() != 3 {
		t.Fatalf("refused %v, want items 2 and 3", got.Refused)
	}
	for i, want := range []string{"payload", "options.priority"} {
		if fields := badFields(t, ErrorOfItem(got.Refused[i])); len(fields) != 1 || fields[0] != want {
			t.Errorf("item %d is refused for %q, want %s", got.Refused[i].GetIndex(), fields, want)
		}
	}
	if got.Counts.Read != 4 || got.EstimatedTasks != 20 || got.Target != (Target{Queue: orders}) {
		t.Errorf("got %+v", got)
	}
}

func TestAddBatchRefusedWhole(t *testing.T) {
	two := [][]byte{nil, nil}
	at := func(indexes ...uint32) (list []*matchingpb.ItemOptions) {
		for _, i := range indexes {
			list = append(list, &matchingpb.ItemOptions{Index: i})
		}
		return list
	}
	for name, tc := range map[string]struct {
		in   *matchingpb.AddBatch
		want string
	}{
		"no queue":          {&matchingpb.AddBatch{Payloads: two}, "task_queue"},
		"dispatch":          {&matchingpb.AddBatch{TaskQueue: EncodeQueue(partition.Queue{Namespace: "ns", Name: "orders", Type: partition.Dispatch}), Payloads: two}, "task_queue.type"},
		"common options":    {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: two, Common: &matchingpb.TaskOptions{Priority: 9}}, "common.priority"},
		"common request id": {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: two, Common: &matchingpb.TaskOptions{RequestId: "r"}}, "common.request_id"},
		"too many":          {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: make([][]byte, 4)}, "payloads"},
		"index outside":     {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: two, Exceptions: at(0, 2)}, "exceptions[1].index"},
		"index far outside": {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: two, Exceptions: at(math.MaxUint32)}, "exceptions[0].index"},
		"index twice":       {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: two, Exceptions: at(1, 1)}, "exceptions[1].index"},
		"index descending":  {&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders), Payloads: two, Exceptions: at(1, 0)}, "exceptions[1].index"},
	} {
		d := decoder()
		d.Limits.BatchItems = 3
		_, err := d.AddBatch(tc.in)
		if got := strings.Join(badFields(t, err), " "); got != tc.want {
			t.Errorf("%s: bad fields %q, want %q", name, got, tc.want)
		}
	}
	empty, err := decoder().AddBatch(&matchingpb.AddBatch{TaskQueue: EncodeQueue(orders)})
	if err != nil || len(empty.Tasks) != 0 {
		t.Errorf("an empty batch: %+v, %v", empty, err)
	}
}

func TestPoll(t *testing.T) {
	rate := 2.5
	got, err := decoder().Poll(&matchingpb.PollTaskRequest{
		TaskQueue: EncodePartition(orders.Partition(1)), MaxTasks: 5000, MaxBytes: 77, PollId: "p", Identity: "me", WorkerInstanceKey: "w",
		Wait: durationpb.New(0), Format: matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS, LeaseDuration: durationpb.New(time.Minute),
		MinPriority: 2, MaxQueueRate: &rate,
	})
	want := Poll{
		Target: Target{Queue: orders, Number: 1, IsPartition: true}, MaxTasks: 1000, MaxBytes: 77, ID: "p", Identity: "me", WorkerKey: "w",
		HasWait: true, Columns: true, Lease: time.Minute, MinPriority: 2, MaxRate: 2.5, HasMaxRate: true,
	}
	if err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	plain, err := decoder().Poll(&matchingpb.PollTaskRequest{TaskQueue: EncodeQueue(orders)})
	if want := (Poll{Target: Target{Queue: orders}, MaxTasks: 1, MinPriority: 5}); err != nil || plain != want {
		t.Errorf("got %+v, %v, want %+v", plain, err, want)
	}
	rate = math.NaN()
	long := strings.Repeat("x", 257)
	_, err = decoder().Poll(&matchingpb.PollTaskRequest{
		MaxTasks: -1, MaxBytes: -1, PollId: long, Identity: long, WorkerInstanceKey: long, Wait: durationpb.New(-1),
		Format: 9, LeaseDuration: durationpb.New(1), MinPriority: 6, MaxQueueRate: &rate,
	})
	bad := []string{"task_queue", "poll_id", "identity", "worker_instance_key", "wait", "lease_duration", "min_priority", "max_tasks", "max_bytes", "format", "max_queue_rate"}
	if got := badFields(t, err); !reflect.DeepEqual(got, bad) {
		t.Errorf("bad fields %q, want %q", got, bad)
	}
}

// TestPollNotUTF8: names that a worker gives go into answers to others.
func TestPollNotUTF8(t *testing.T) {
	const bad = "\xff"
	_, err := decoder().Poll(&matchingpb.PollTaskRequest{TaskQueue: EncodeQueue(orders), PollId: bad, Identity: bad, WorkerInstanceKey: bad})
	if got, want := badFields(t, err), []string{"poll_id", "identity", "worker_instance_key"}; !reflect.DeepEqual(got, want) {
		t.Errorf("bad fields %q, want %q", got, want)
	}
}

// TestAddToDispatch: what is dispatched is never stored.
func TestAddToDispatch(t *testing.T) {
	q := orders
	q.Type = partition.Dispatch
	_, _, err := decoder().AddTask(&matchingpb.AddTaskRequest{TaskQueue: EncodeQueue(q)})
	if got := badFields(t, err); len(got) != 1 || got[0] != "task_queue.type" {
		t.Errorf("bad fields %q, want the type", got)
	}
}

func TestFailure(t *testing.T) {
	for _, want := range []Failure{
		{},
		{Message: "boom", Details: []byte{1, 2}, NonRetryable: true},
		{Message: "later", RetryAfter: time.Minute, HasRetryAfter: true},
		{HasRetryAfter: true},
	} {
		if got, err := decoder().Failure("failure", want.Encode()); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
	long, err := decoder().Failure("failure", &matchingpb.Failure{Message: strings.Repeat("€", 5000), Details: make([]byte, 20<<10)})
	if err != nil || len(long.Message) != 4095 || len(long.Details) != 16<<10 {
		t.Errorf("kept %d and %d bytes of a long failure, %v", len(long.Message), len(long.Details), err)
	}
	_, err = decoder().Failure("failure", &matchingpb.Failure{RetryAfter: durationpb.New(-1)})
	if got := badFields(t, err); !reflect.DeepEqual(got, []string{"failure.retry_after"}) {
		t.Errorf("bad fields %q", got)
	}
}
