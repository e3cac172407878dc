package wire

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// Code is the table of errors: the gRPC code of each reason. The typed details
// stand in encodeDetail and decodeDetail.
func Code(r task.Reason) codes.Code {
	switch r {
	case task.Invalid:
		return codes.InvalidArgument
	case task.NotFound:
		return codes.NotFound
	case task.Unimplemented:
		return codes.Unimplemented
	case task.NotOwner, task.StaleCounts:
		return codes.Aborted
	case task.PartitionClosing, task.NotReady, task.StoreUnavailable:
		return codes.Unavailable
	case task.OutcomeUnknown:
		return codes.Unknown
	case task.Quota:
		return codes.ResourceExhausted
	case task.LeaseLost, task.Cancelled, task.Paused, task.Draining, task.DiskWatermark:
		return codes.FailedPrecondition
	default:
		return codes.Internal
	}
}

// reasonOfCode is the way back for a reason that this version does not know:
// the nearest one of its code that treats the caller alike. Only a newer node
// sends such a reason.
func reasonOfCode(c codes.Code) task.Reason {
	switch c {
	case codes.InvalidArgument:
		return task.Invalid
	case codes.NotFound:
		return task.NotFound
	case codes.Unimplemented:
		return task.Unimplemented
	case codes.Aborted, codes.Unavailable:
		return task.NotReady
	case codes.Unknown, codes.DeadlineExceeded, codes.Canceled:
		return task.OutcomeUnknown
	case codes.ResourceExhausted:
		return task.Quota
	default:
		return task.Internal
	}
}

// ForeignError is the cause of an error whose status no node made: gRPC made it when
// a connection broke or a deadline passed, or a proxy or an interceptor did. It
// matches context.DeadlineExceeded and context.Canceled by its code.
type ForeignError struct {
	Code    codes.Code
	Message string
}

// Error returns the code and the message.
func (e *ForeignError) Error() string { return fmt.Sprintf("grpc %s: %s", e.Code, e.Message) }

// Is makes errors.Is find the context error that the code stands for.
func (e *ForeignError) Is(target error) bool {
	return target != nil && target == contextError(e.Code)
}

// Guessed reports whether err was made up from a status that no node made, so
// that its reason is a guess.
func Guessed(err error) bool {
	_, ok := errors.AsType[*ForeignError](err)
	return ok
}

// contextError returns the error of package context that a code stands for.
func contextError(c codes.Code) error {
	switch c {
	case codes.DeadlineExceeded:
		return context.DeadlineExceeded
	case codes.Canceled:
		return context.Canceled
	default:
		return nil
	}
}

// guess makes an error of a foreign status. Codes by which the call surely did
// nothing keep that meaning; after all others the outcome is unknown.
func guess(st *status.Status) *task.Error {
	foreign := &ForeignError{Code: st.Code(), Message: st.Message()}
	var reason task.Reason
	switch st.Code() {
	case codes.InvalidArgument, codes.NotFound, codes.Unimplemented:
		reason = reasonOfCode(st.Code())
	case codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition, codes.OutOfRange, codes.AlreadyExists:
		reason = task.Internal
	default:
		reason = task.OutcomeUnknown
	}
	return task.Errorf(reason, "%w", foreign)
}

// domainError returns the error of the domain that err is or stands for; err
// is not nil.
func domainError(err error) *task.Error {
	if e, ok := errors.AsType[*task.Error](err); ok {
		return e
	}
	if r, ok := errors.AsType[task.Reason](err); ok {
		return &task.Error{Reason: r, Message: err.Error()}
	}
	if st, ok := status.FromError(err); ok {
		return fromStatus(st)
	}
	if st := status.FromContextError(err); st.Code() != codes.Unknown {
		return guess(st)
	}
	return &task.Error{Reason: task.Internal, Message: err.Error(), Cause: err}
}

// codeOf is [Code], but for causes that say more than the table can: an outcome
// is unknown because a deadline passed or the caller gave up; a right is lacking.
func codeOf(e *task.Error) codes.Code {
	var f *ForeignError
	unknown := e.Reason == task.OutcomeUnknown
	switch {
	case unknown && errors.Is(e.Cause, context.DeadlineExceeded):
		return codes.DeadlineExceeded
	case unknown && errors.Is(e.Cause, context.Canceled):
		return codes.Canceled
	case errors.As(e.Cause, &f) && (f.Code == codes.PermissionDenied || f.Code == codes.Unauthenticated):
		return f.Code
	default:
		return Code(e.Reason)
	}
}

// ItemErrorOf returns the error of item index of a batch; err is not nil. For
// the error of a whole batch the index is 0.
func ItemErrorOf(index int, err error) *matchingpb.ItemError {
	e := domainError(err)
	m := &matchingpb.ItemError{
		Index:   uint32(index),
		Code:    int32(codeOf(e)),
		Reason:  e.Reason.String(),
		Message: text(e.Message),
	}
	encodeDetail(m, e)
	return m
}

// ErrorOfItem returns the error that [ItemErrorOf] was given, without its
// cause; nil for nil. It is always a *task.Error.
func ErrorOfItem(m *matchingpb.ItemError) error {
	if m == nil {
		return nil
	}
	return errorOfItem(m)
}

func errorOfItem(m *matchingpb.ItemError) *task.Error {
	code := codes.Code(m.GetCode())
	e := &task.Error{Message: m.GetMessage(), Cause: contextError(code)}
	reason, known := task.ParseReason(m.GetReason())
	if !known {
		reason = reasonOfCode(code)
		e.Message = m.GetReason() + ": " + e.Message
	}
	e.Reason = reason
	decodeDetail(e, m)
	return e
}

// encodeDetail adds the typed detail of the error's reason, and the same as
// text for callers in languages without our messages.
func encodeDetail(m *matchingpb.ItemError, e *task.Error) {
	switch {
	case len(e.Violations) > 0:
		m.Detail = &matchingpb.ItemError_InvalidFields{InvalidFields: encodeViolations(e.Violations)}
	case e.Owner != nil:
		m.Detail = &matchingpb.ItemError_NotOwner{NotOwner: EncodeOwnership(*e.Owner)}
		m.Metadata = map[string]string{
			"node":             text(e.Owner.Holder.Node),
			"run_id":           text(e.Owner.Holder.RunID),
			"address":          text(e.Owner.Holder.Address),
			"epoch":            strconv.FormatUint(uint64(e.Owner.Epoch), 10),
			"view_fingerprint": strconv.FormatUint(e.Owner.ViewFingerprint, 16),
		}
	case e.Stale != nil:
		m.Detail = &matchingpb.ItemError_StalePartitionCounts{StalePartitionCounts: &matchingpb.StalePartitionCounts{
			Why:    matchingpb.StaleReason(e.Stale.Why),
			Counts: PartitionCounts{e.Stale.Counts}.Encode(),
		}}
		m.Metadata = map[string]string{
			"read":  strconv.Itoa(int(e.Stale.Counts.Read)),
			"write": strconv.Itoa(int(e.Stale.Counts.Write)),
		}
	case e.Limit != nil:
		m.Detail = &matchingpb.ItemError_QuotaExceeded{QuotaExceeded: &matchingpb.QuotaExceeded{Limit: text(e.Limit.Name)}}
		m.RetryAfter = encodeDuration(e.Limit.RetryAfter)
		m.Metadata = map[string]string{"limit": text(e.Limit.Name)}
	}
	maps.DeleteFunc(m.GetMetadata(), func(_, v string) bool { return v == "" })
}

// decodeDetail sets what [encodeDetail] wrote.
func decodeDetail(e *task.Error, m *matchingpb.ItemError) {
	switch d := m.GetDetail().(type) {
	case *matchingpb.ItemError_InvalidFields:
		for _, v := range d.InvalidFields.GetViolations() {
			e.Violations = append(e.Violations, task.Violation{Field: v.GetField(), Description: v.GetDescription()})
		}
	case *matchingpb.ItemError_NotOwner:
		owner := DecodeOwnership(d.NotOwner)
		e.Owner = &owner
	case *matchingpb.ItemError_StalePartitionCounts:
		s := d.StalePartitionCounts
		e.Stale = &task.Stale{Why: decodeStaleWhy(s.GetWhy()), Counts: DecodePartitionCounts(s.GetCounts()).Counts}
	case *matchingpb.ItemError_QuotaExceeded:
		e.Limit = &task.Limit{Name: d.QuotaExceeded.GetLimit(), RetryAfter: m.GetRetryAfter().AsDuration()}
	}
}

// decodeStaleWhy drops a reason of a newer version: a caller acts on the counts.
func decodeStaleWhy(r matchingpb.StaleReason) task.StaleWhy {
	if r < 0 || r > matchingpb.StaleReason(task.CountsTooDifferent) {
		return 0
	}
	return task.StaleWhy(r)
}

// What of an error is sent at most. It travels in HTTP/2 trailers, which
// clients in some languages limit to 8 KiB, in base64.
const (
	maxText       = 1 << 10 // bytes of one text
	maxViolations = 20
	maxViolation  = 200 // bytes of one violation's text
)

func encodeViolations(list []task.Violation) *matchingpb.InvalidFields {
	out := &matchingpb.InvalidFields{}
	for i, v := range list {
		if i == maxViolations-1 && len(list) > maxViolations {
			more := fmt.Sprintf("and %d more bad fields", len(list)-i)
			out.Violations = append(out.Violations, &matchingpb.FieldViolation{Field: "...", Description: more})
			break
		}
		out.Violations = append(out.Violations, &matchingpb.FieldViolation{Field: cut(v.Field, maxViolation), Description: cut(v.Description, maxViolation)})
	}
	return out
}

func text(s string) string { return cut(s, maxText) }

// cut makes s valid UTF-8, which protobuf demands, of at most limit bytes.
func cut(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	for !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
