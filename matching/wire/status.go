package wire

import (
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// Domain is the domain of every google.rpc.ErrorInfo of the service.
const Domain = "taskring"

// ToStatus returns the gRPC status error that a handler answers with; nil for
// nil. An error without a reason of the domain is INTERNAL; one that came from
// another call is translated, never passed on as it is.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	m := ItemErrorOf(0, err)
	st := status.New(codes.Code(m.GetCode()), m.GetMessage())
	if with, err := st.WithDetails(statusDetails(m)...); err == nil {
		st = with
	}
	return st.Err()
}

// statusDetails returns the details of an error: ErrorInfo first, then what its
// reason calls for.
func statusDetails(m *matchingpb.ItemError) []protoadapt.MessageV1 {
	out := []protoadapt.MessageV1{&errdetails.ErrorInfo{Reason: m.GetReason(), Domain: Domain, Metadata: m.GetMetadata()}}
	switch d := m.GetDetail().(type) {
	case *matchingpb.ItemError_InvalidFields:
		bad := &errdetails.BadRequest{}
		for _, v := range d.InvalidFields.GetViolations() {
			bad.FieldViolations = append(bad.FieldViolations, &errdetails.BadRequest_FieldViolation{Field: v.GetField(), Description: v.GetDescription()})
		}
		out = append(out, bad)
	case *matchingpb.ItemError_NotOwner:
		out = append(out, d.NotOwner)
	case *matchingpb.ItemError_StalePartitionCounts:
		out = append(out, d.StalePartitionCounts)
	case *matchingpb.ItemError_QuotaExceeded:
		limit := d.QuotaExceeded.GetLimit()
		out = append(out, d.QuotaExceeded, &errdetails.QuotaFailure{
			Violations: []*errdetails.QuotaFailure_Violation{{Subject: limit, Description: m.GetMessage()}},
		})
	}
	if after := m.GetRetryAfter(); after != nil {
		out = append(out, &errdetails.RetryInfo{RetryDelay: after})
	}
	switch m.GetReason() {
	case task.Paused.String(), task.Draining.String(), task.DiskWatermark.String():
		out = append(out, &errdetails.PreconditionFailure{
			Violations: []*errdetails.PreconditionFailure_Violation{{Type: m.GetReason(), Description: m.GetMessage()}},
		})
	}
	return out
}

// FromStatus returns the error that a call's status error stands for: the one
// that [ToStatus] was given, without its cause, or a guess, see [Guessed], when
// no node made the status. nil for nil; an error of the domain, as a call within
// the process returns it, comes back as it is. The result is always a
// *task.Error or wraps one.
func FromStatus(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*task.Error](err); ok {
		return err
	}
	st, ok := status.FromError(err)
	if !ok {
		st = status.FromContextError(err)
	}
	return fromStatus(st)
}

func fromStatus(st *status.Status) *task.Error {
	m, ours := itemOf(st)
	if !ours {
		return guess(st)
	}
	return errorOfItem(m)
}

// itemOf gathers a status and its details; ours is false when it has no
// ErrorInfo of our domain.
func itemOf(st *status.Status) (m *matchingpb.ItemError, ours bool) {
	m = &matchingpb.ItemError{Code: int32(st.Code()), Message: st.Message()}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if d.GetDomain() == Domain {
				m.Reason, m.Metadata, ours = d.GetReason(), d.GetMetadata(), true
			}
		case *errdetails.BadRequest:
			bad := &matchingpb.InvalidFields{}
			for _, v := range d.GetFieldViolations() {
				bad.Violations = append(bad.Violations, &matchingpb.FieldViolation{Field: v.GetField(), Description: v.GetDescription()})
			}
			m.Detail = &matchingpb.ItemError_InvalidFields{InvalidFields: bad}
		case *matchingpb.NotOwner:
			m.Detail = &matchingpb.ItemError_NotOwner{NotOwner: d}
		case *matchingpb.StalePartitionCounts:
			m.Detail = &matchingpb.ItemError_StalePartitionCounts{StalePartitionCounts: d}
		case *matchingpb.QuotaExceeded:
			m.Detail = &matchingpb.ItemError_QuotaExceeded{QuotaExceeded: d}
		case *errdetails.RetryInfo:
			m.RetryAfter = d.GetRetryDelay()
		}
	}
	return m, ours
}
