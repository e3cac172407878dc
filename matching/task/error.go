package task

import (
	"errors"
	"fmt"
	"time"

	"github.com/taskring/taskring/partition"
)

// Reason is the machine-readable cause of an error of the service. A Reason is
// itself an error, so that errors.Is(err, task.LeaseLost) asks for one.
type Reason uint8

// The reasons. matching/wire maps each to a gRPC code and back.
const (
	Internal         Reason = iota // a bug, or corrupt data
	Invalid                        // the request is wrong; never retried
	NotFound                       // the named task or queue does not exist
	Unimplemented                  // this version does not serve the method or field
	NotOwner                       // another node holds the partition, see Error.Owner
	StaleCounts                    // the caller's partition counts are off, see Error.Stale
	PartitionClosing               // the partition is being unloaded
	NotReady                       // the partition is loading or moving
	StoreUnavailable               // the store refused; surely nothing was stored
	OutcomeUnknown                 // the change may or may not have happened
	Quota                          // a limit was reached, see Error.Limit
	LeaseLost                      // the grant is no longer the live one
	Cancelled                      // the task was cancelled
	Paused                         // the queue is paused
	Draining                       // the node is draining
	DiskWatermark                  // the node's disk is too full for adds
)

// String returns the reason as it stands in google.rpc.ErrorInfo.
func (r Reason) String() string {
	names := [...]string{
		Internal: "INTERNAL", Invalid: "INVALID", NotFound: "NOT_FOUND", Unimplemented: "UNIMPLEMENTED",
		NotOwner: "NOT_OWNER", StaleCounts: "STALE_PARTITION_COUNTS", PartitionClosing: "PARTITION_CLOSING",
		NotReady: "NOT_READY", StoreUnavailable: "STORE_UNAVAILABLE", OutcomeUnknown: "OUTCOME_UNKNOWN",
		Quota: "QUOTA", LeaseLost: "LEASE_LOST", Cancelled: "CANCELLED", Paused: "PAUSED",
		Draining: "DRAINING", DiskWatermark: "DISK_WATERMARK",
	}
	if int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("REASON_%d", uint8(r))
}

// Error makes a Reason an error, as a target of errors.Is.
func (r Reason) Error() string { return r.String() }

// ParseReason reads the form that [Reason.String] writes; ok is false for a
// name that this version does not know.
func ParseReason(s string) (r Reason, ok bool) {
	for r := Internal; r <= DiskWatermark; r++ {
		if r.String() == s {
			return r, true
		}
	}
	return Internal, false
}

// Violation names one bad field of a request.
type Violation struct {
	Field       string // path in the request, such as "options.priority"
	Description string // what is wrong and what would be right
}

// Ownership tells who holds a partition. Epoch is 0 when only the ring says so.
type Ownership struct {
	Holder          Holder
	Epoch           Epoch
	ViewFingerprint uint64
}

// StaleWhy tells which check of the partition counts refused a call.
type StaleWhy uint8

// Why partition counts are refused.
const (
	InvalidPartition   StaleWhy = iota + 1 // number at or above the read count
	DrainingPartition                      // a write to a number at or above the write count
	CountsTooDifferent                     // the caller's counts are too far off
)

// Stale carries the counts in force with a StaleCounts error.
type Stale struct {
	Why    StaleWhy
	Counts partition.Counts
}

// Limit names the limit that a Quota error is about.
type Limit struct {
	Name       string        // the setting's key
	RetryAfter time.Duration // 0 = no advice
}

// Error is an error that the service answers with. Message is English for
// developers: what is wrong and what would be right. At most one of Owner,
// Stale and Limit is set, by Reason.
type Error struct {
	Reason     Reason
	Message    string
	Violations []Violation
	Owner      *Ownership
	Stale      *Stale
	Limit      *Limit
	Cause      error // kept in this process, never sent
}

// Errorf makes an error with a reason. A %w operand becomes the cause.
func Errorf(r Reason, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Reason: r, Message: wrapped.Error(), Cause: errors.Unwrap(wrapped)}
}

// Error returns the reason and the message.
func (e *Error) Error() string { return e.Reason.String() + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors.Is(err, reason) true for the error's reason.
func (e *Error) Is(target error) bool {
	r, ok := target.(Reason)
	return ok && r == e.Reason
}

// ReasonOf returns the reason of err, or Internal for an error without one.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	if r, ok := errors.AsType[Reason](err); ok {
		return r
	}
	return Internal
}
