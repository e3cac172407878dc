package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// errorRow is a row of the table of errors: what is sent, as which code, with
// which details beside ErrorInfo.
type errorRow struct {
	err     *task.Error
	code    codes.Code
	details []proto.Message
}

func errorRows() []errorRow {
	plain := func(r task.Reason, c codes.Code) errorRow {
		return errorRow{err: task.Errorf(r, "why %s", r), code: c}
	}
	precondition := func(r task.Reason) errorRow {
		row := plain(r, codes.FailedPrecondition)
		row.details = []proto.Message{&errdetails.PreconditionFailure{}}
		return row
	}
	return []errorRow{
		plain(task.Internal, codes.Internal),
		{
			err: &task.Error{Reason: task.Invalid, Message: "two bad fields", Violations: []task.Violation{
				{Field: "options.priority", Description: "is 9, priorities run from 1 to 5"},
				{Field: "payload", Description: "is 2 bytes long, the limit is 1"},
			}},
			code: codes.InvalidArgument, details: []proto.Message{&errdetails.BadRequest{}},
		},
		plain(task.NotFound, codes.NotFound),
		plain(task.Unimplemented, codes.Unimplemented),
		{
			err: &task.Error{Reason: task.NotOwner, Message: "held elsewhere", Owner: &task.Ownership{
				Holder: task.Holder{Node: "node-b", RunID: "run-7", Address: "10.0.0.2:7233"}, Epoch: 9, ViewFingerprint: 1<<63 + 5,
			}},
			code: codes.Aborted, details: []proto.Message{&matchingpb.NotOwner{}},
		},
		{
			err:  &task.Error{Reason: task.NotOwner, Message: "nobody is known", Owner: &task.Ownership{}},
			code: codes.Aborted, details: []proto.Message{&matchingpb.NotOwner{}},
		},
		{
			err: &task.Error{Reason: task.StaleCounts, Message: "partition 7 of 4", Stale: &task.Stale{
				Why: task.InvalidPartition, Counts: partition.Counts{Read: 4, Write: 2, BacklogCap: 100, BacklogCodes: "\x00\xff\x01\x02", Managed: true},
			}},
			code: codes.Aborted, details: []proto.Message{&matchingpb.StalePartitionCounts{}},
		},
		plain(task.PartitionClosing, codes.Unavailable),
		plain(task.NotReady, codes.Unavailable),
		plain(task.StoreUnavailable, codes.Unavailable),
		plain(task.OutcomeUnknown, codes.Unknown),
		{
			err:  &task.Error{Reason: task.Quota, Message: "too fast", Limit: &task.Limit{Name: "matching.rps", RetryAfter: 250 * time.Millisecond}},
			code: codes.ResourceExhausted, details: []proto.Message{&matchingpb.QuotaExceeded{}, &errdetails.QuotaFailure{}, &errdetails.RetryInfo{}},
		},
		{
			err:  &task.Error{Reason: task.Quota, Message: "full", Limit: &task.Limit{Name: "matching.maxLeases"}},
			code: codes.ResourceExhausted, details: []proto.Message{&matchingpb.QuotaExceeded{}, &errdetails.QuotaFailure{}},
		},
		plain(task.LeaseLost, codes.FailedPrecondition),
		plain(task.Cancelled, codes.FailedPrecondition),
		precondition(task.Paused),
		precondition(task.Draining),
		precondition(task.DiskWatermark),
	}
}

// overTheWire sends a status error through its bytes, as a connection does.
func overTheWire(t *testing.T, err error) error {
	t.Helper()
	b, marshalErr := proto.Marshal(status.Convert(err).Proto())
	if marshalErr != nil {
		t.Fatal(marshalErr)
	}
	var p spb.Status
	if err := proto.Unmarshal(b, &p); err != nil {
		t.Fatal(err)
	}
	return status.FromProto(&p).Err()
}

func TestEveryReasonHasARow(t *testing.T) {
	seen := map[task.Reason]bool{}
	for _, row := range errorRows() {
		seen[row.err.Reason] = true
	}
	for r := task.Internal; r.String() != fmt.Sprintf("REASON_%d", uint8(r)); r++ {
		if !seen[r] {
			t.Errorf("no row tests %s", r)
		}
	}
}

func TestErrorTableAsStatus(t *testing.T) {
	for _, row := range errorRows() {
		sent := overTheWire(t, ToStatus(fmt.Errorf("while serving: %w", row.err)))
		st := status.Convert(sent)
		if st.Code() != row.code {
			t.Errorf("%v: code %s, want %s", row.err, st.Code(), row.code)
		}
		checkDetails(t, row, st)
		got := FromStatus(sent)
		if !reflect.DeepEqual(got, error(row.err)) {
			t.Errorf("came back as %#v, sent %#v", got, row.err)
		}
		if Guessed(got) {
			t.Errorf("%v: taken for a guess, though a node said so", got)
		}
	}
}

func checkDetails(t *testing.T, row errorRow, st *status.Status) {
	t.Helper()
	details := st.Details()
	if len(details) != 1+len(row.details) {
		t.Errorf("%v: %d details, want ErrorInfo and %d more: %v", row.err, len(details), len(row.details), details)
		return
	}
	info, ok := details[0].(*errdetails.ErrorInfo)
	if !ok || info.GetDomain() != "taskring" || info.GetReason() != row.err.Reason.String() {
		t.Errorf("%v: first detail is %v, want ErrorInfo with the reason", row.err, details[0])
	}
	for i, want := range row.details {
		if reflect.TypeOf(details[i+1]) != reflect.TypeOf(want) {
			t.Errorf("%v: detail %d is a %T, want %T", row.err, i+1, details[i+1], want)
		}
	}
}

func TestErrorTableAsItem(t *testing.T) {
	for _, row := range errorRows() {
		b, err := proto.Marshal(ItemErrorOf(3, fmt.Errorf("item: %w", row.err)))
		if err != nil {
			t.Fatal(err)
		}
		var item matchingpb.ItemError
		if err := proto.Unmarshal(b, &item); err != nil {
			t.Fatal(err)
		}
		if item.GetIndex() != 3 || codes.Code(item.GetCode()) != row.code || item.GetReason() != row.err.Reason.String() {
			t.Errorf("%v: item %v", row.err, &item)
		}
		if got := ErrorOfItem(&item); !reflect.DeepEqual(got, error(row.err)) {
			t.Errorf("came back as %#v, sent %#v", got, row.err)
		}
	}
}

// TestMetadata is what a caller without our messages acts on.
func TestMetadata(t *testing.T) {
	for _, row := range errorRows() {
		m := ItemErrorOf(0, row.err).GetMetadata()
		switch {
		case row.err.Owner != nil && row.err.Owner.Epoch != 0:
			want := map[string]string{"node": "node-b", "run_id": "run-7", "address": "10.0.0.2:7233", "epoch": "9", "view_fingerprint": "8000000000000005"}
			if !reflect.DeepEqual(m, want) {
				t.Errorf("%v: metadata %v, want %v", row.err, m, want)
			}
		case row.err.Stale != nil:
			if m["read"] != "4" || m["write"] != "2" {
				t.Errorf("%v: metadata %v", row.err, m)
			}
		case row.err.Limit != nil:
			if m["limit"] != row.err.Limit.Name {
				t.Errorf("%v: metadata %v", row.err, m)
			}
		}
	}
}

func TestNoErrorStaysNone(t *testing.T) {
	if ToStatus(nil) != nil || FromStatus(nil) != nil || ErrorOfItem(nil) != nil {
		t.Error("nil does not stay nil")
	}
}

// TestForeign shows what becomes of statuses that no node made.
func TestForeign(t *testing.T) {
	for _, tc := range []struct {
		in      error
		reason  task.Reason
		context error
		onward  codes.Code // when a frontend passes it on
	}{
		{status.Error(codes.Unavailable, "transport is closing"), task.OutcomeUnknown, nil, codes.Unknown},
		{status.Error(codes.Unknown, "?"), task.OutcomeUnknown, nil, codes.Unknown},
		{status.Error(codes.Internal, "stream terminated by RST_STREAM"), task.OutcomeUnknown, nil, codes.Unknown},
		{status.Error(codes.ResourceExhausted, "received message larger than max"), task.OutcomeUnknown, nil, codes.Unknown},
		{status.Error(codes.Canceled, "context canceled"), task.OutcomeUnknown, context.Canceled, codes.Canceled},
		{status.Error(codes.DeadlineExceeded, "context deadline exceeded"), task.OutcomeUnknown, context.DeadlineExceeded, codes.DeadlineExceeded},
		{context.DeadlineExceeded, task.OutcomeUnknown, context.DeadlineExceeded, codes.DeadlineExceeded},
		{fmt.Errorf("receiving: %w", context.Canceled), task.OutcomeUnknown, context.Canceled, codes.Canceled},
		{io.ErrUnexpectedEOF, task.OutcomeUnknown, nil, codes.Unknown},
		{status.Error(codes.Unimplemented, "unknown service"), task.Unimplemented, nil, codes.Unimplemented},
		{status.Error(codes.InvalidArgument, "proxy says no"), task.Invalid, nil, codes.InvalidArgument},
		{status.Error(codes.NotFound, "no such route"), task.NotFound, nil, codes.NotFound},
		{status.Error(codes.PermissionDenied, "not you"), task.Internal, nil, codes.PermissionDenied},
		{status.Error(codes.Unauthenticated, "who"), task.Internal, nil, codes.Unauthenticated},
	} {
		got := FromStatus(tc.in)
		if task.ReasonOf(got) != tc.reason || !Guessed(got) {
			t.Errorf("%v: %v (guessed %v), want reason %s as a guess", tc.in, got, Guessed(got), tc.reason)
		}
		for _, c := range []error{context.Canceled, context.DeadlineExceeded} {
			if want := errors.Is(tc.context, c); errors.Is(got, c) != want {
				t.Errorf("%v: errors.Is(%v) = %v", tc.in, c, !want)
			}
		}
		onward := overTheWire(t, ToStatus(got))
		if status.Code(onward) != tc.onward {
			t.Errorf("%v: passed on as %s, want %s", tc.in, status.Code(onward), tc.onward)
		}
		again := FromStatus(onward)
		if task.ReasonOf(again) != tc.reason || Guessed(again) {
			t.Errorf("%v: behind a frontend %v (guessed %v)", tc.in, again, Guessed(again))
		}
		if tc.context != nil && !errors.Is(again, tc.context) {
			t.Errorf("%v: behind a frontend it is no %v any more", tc.in, tc.context)
		}
	}
}

// TestForeignErrorInfo: another service's ErrorInfo is not ours.
func TestForeignErrorInfo(t *testing.T) {
	st, err := status.New(codes.Aborted, "x").WithDetails(&errdetails.ErrorInfo{Reason: "NOT_OWNER", Domain: "example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if got := FromStatus(st.Err()); task.ReasonOf(got) != task.OutcomeUnknown || !Guessed(got) {
		t.Errorf("taken for %v", got)
	}
}

// TestNewerReason: a reason of a newer node is treated by its code.
func TestNewerReason(t *testing.T) {
	for code, want := range map[codes.Code]task.Reason{
		codes.InvalidArgument: task.Invalid, codes.Unavailable: task.NotReady, codes.Aborted: task.NotReady,
		codes.Unknown: task.OutcomeUnknown, codes.ResourceExhausted: task.Quota, codes.FailedPrecondition: task.Internal,
		codes.NotFound: task.NotFound, codes.Unimplemented: task.Unimplemented,
	} {
		got := ErrorOfItem(&matchingpb.ItemError{Code: int32(code), Reason: "BRAND_NEW", Message: "m"})
		if task.ReasonOf(got) != want || !strings.Contains(got.Error(), "BRAND_NEW: m") || Guessed(got) {
			t.Errorf("%s: %v, want %s naming the reason", code, got, want)
		}
	}
}

// TestNewerStaleReason: what a caller acts on are the counts.
func TestNewerStaleReason(t *testing.T) {
	m := ItemErrorOf(0, &task.Error{Reason: task.StaleCounts, Stale: &task.Stale{Why: task.DrainingPartition, Counts: partition.Counts{Read: 2, Write: 1}}})
	m.GetStalePartitionCounts().Why = 99
	var e *task.Error
	if !errors.As(ErrorOfItem(m), &e) || e.Stale == nil || e.Stale.Why != 0 || e.Stale.Counts.Read != 2 {
		t.Errorf("came back as %+v", e)
	}
}

// TestUnnamedErrors: what a handler may come up with besides domain errors.
func TestUnnamedErrors(t *testing.T) {
	if got := FromStatus(ToStatus(task.LeaseLost)); !errors.Is(got, task.LeaseLost) {
		t.Errorf("a bare reason came back as %v", got)
	}
	if st := status.Convert(ToStatus(errors.New("nil map"))); st.Code() != codes.Internal || st.Message() != "nil map" {
		t.Errorf("an error without a reason is sent as %v", st)
	}
	// A handler's own call to another node failed: translated, not passed on.
	inner := ToStatus(task.Errorf(task.StoreUnavailable, "disk"))
	if got := FromStatus(ToStatus(fmt.Errorf("forwarding: %w", inner))); !errors.Is(got, task.StoreUnavailable) {
		t.Errorf("another node's status came back as %v", got)
	}
	if got := FromStatus(ToStatus(context.Canceled)); !errors.Is(got, task.OutcomeUnknown) || !errors.Is(got, context.Canceled) {
		t.Errorf("a bare context error came back as %v", got)
	}
	local := fmt.Errorf("direct: %w", task.Errorf(task.Quota, "full"))
	if got := FromStatus(local); !errors.Is(got, local) {
		t.Errorf("an error of a call within the process came back as %v", got)
	}
	// Surely nothing was stored, whatever ended the wait.
	waited := task.Errorf(task.NotReady, "still loading: %w", context.DeadlineExceeded)
	if c := status.Code(ToStatus(waited)); c != codes.Unavailable {
		t.Errorf("NOT_READY at the deadline is sent as %s", c)
	}
}

// TestErrorsFitTrailers: the worst error stays small and valid, and says what
// it left out.
func TestErrorsFitTrailers(t *testing.T) {
	e := task.Errorf(task.Invalid, "%s", strings.Repeat("\xff", 5000))
	for range 100 {
		e.Violations = append(e.Violations, task.Violation{Field: strings.Repeat("f\xff", 500), Description: strings.Repeat("€", 500)})
	}
	st := status.Convert(ToStatus(e))
	if size := proto.Size(st.Proto()); size > 12<<10 {
		t.Errorf("the status takes %d bytes", size)
	}
	var got *task.Error
	if !errors.As(FromStatus(overTheWire(t, st.Err())), &got) || len(got.Violations) != maxViolations {
		t.Fatalf("came back as %v", got)
	}
	if last := got.Violations[maxViolations-1]; last.Description != "and 81 more bad fields" {
		t.Errorf("the last violation is %v", last)
	}
}

func FuzzErrorOfItem(f *testing.F) {
	for i, row := range errorRows() {
		b, err := proto.Marshal(ItemErrorOf(i, row.err))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m matchingpb.ItemError
		if proto.Unmarshal(b, &m) != nil {
			return
		}
		first := ErrorOfItem(&m)
		second := FromStatus(ToStatus(first))
		if task.ReasonOf(first) != task.ReasonOf(second) || Guessed(second) {
			t.Fatalf("%v is sent on as %v", first, second)
		}
	})
}
