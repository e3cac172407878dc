package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// Error is an error that knows the code to exit with and what to do next.
type Error struct {
	Code Code
	Err  error
	Hint string // what to do next; empty when Err says it
}

// Error returns what is wrong and, on a line of its own, what to do next.
func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + "\n" + e.Hint
}

// Unwrap returns the error without its hint.
func (e *Error) Unwrap() error { return e.Err }

// Usagef is an error of whoever typed the command.
func Usagef(format string, args ...any) error {
	return &Error{Code: Usage, Err: fmt.Errorf(format, args...)}
}

// Of returns the code that err asks for; 0 for no error.
func Of(err error) Code {
	var known *Error
	switch {
	case err == nil:
		return OK
	case errors.As(err, &known):
		return known.Code
	case errors.Is(err, context.Canceled):
		return Interrupted
	}
	return Failure
}

// Call explains the error of a call to a node: doing says what was being done,
// addresses where. An [Error] comes back as it is, nil for nil.
func Call(err error, doing string, addresses []string) error {
	var told *Error
	if err == nil || errors.As(err, &told) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &Error{Code: Interrupted, Err: fmt.Errorf("%s: interrupted", doing)}
	}
	known := wire.FromStatus(err)
	code, hint := advise(known, addresses)
	if errors.Is(err, client.ErrUnreachable) {
		code, hint = Unavailable, noNode(addresses)
	}
	return &Error{Code: code, Err: fmt.Errorf("%s: %w", doing, known), Hint: hint}
}

// noNode is what to do when no connection was made.
func noNode(addresses []string) string {
	return "no node serves at " + strings.Join(addresses, ", ") + "; start one with `taskring server`, or name another with --address"
}

// advise is the table of what to do about the errors of the service.
func advise(err error, addresses []string) (Code, string) {
	at := strings.Join(addresses, ", ")
	switch task.ReasonOf(err) {
	case task.Invalid:
		return Usage, ""
	case task.NotFound:
		return NotFound, "see what there is with `taskring task peek` and `taskring queue list`; a finished task is gone"
	case task.Unimplemented:
		return Failure, fmt.Sprintf("the node at %s does not serve this; a newer version may", at)
	case task.StaleCounts:
		return NotFound, "`taskring partition list` shows the partitions of the queue"
	case task.NotReady, task.PartitionClosing, task.NotOwner, task.Draining:
		return Unavailable, "try again; when that does not help, is a node running there, and what does its /readyz say?"
	case task.StoreUnavailable, task.DiskWatermark:
		return Unavailable, "the node's store does not take writes; look at the node's log and at its /readyz"
	case task.OutcomeUnknown:
		return Unavailable, at + " did not answer: what was asked for may or may not have happened; look before you repeat it"
	case task.Quota:
		return Unavailable, "wait, or raise the limit that is named"
	case task.Paused:
		return Failure, "the queue was paused by someone; `taskring queue describe` shows who and why"
	default:
		return Failure, ""
	}
}
