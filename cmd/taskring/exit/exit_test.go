package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

func TestCodesAreAscendingAndInTheHelp(t *testing.T) {
	last := Code(-1)
	for _, m := range Codes() {
		if m.Code <= last {
			t.Errorf("code %d stands behind %d", m.Code, last)
		}
		last = m.Code
		if line := fmt.Sprintf("%3d  %s\n", m.Code, m.Text); !strings.Contains(Help(), line) {
			t.Errorf("the help lacks the line %q", line)
		}
	}
}

// TestCall takes errors over the wire and back, as commands see them.
func TestCall(t *testing.T) {
	for _, c := range []struct {
		err  error
		code Code
		says []string
	}{
		{task.Errorf(task.Invalid, "priority 9 is not 1 to 5"), Usage, []string{"priority 9 is not 1 to 5"}},
		{task.Errorf(task.NotFound, "no task 7"), NotFound, []string{"no task 7", "task peek"}},
		{task.Errorf(task.Unimplemented, "PurgeTasks"), Failure, []string{"a newer version"}},
		{task.Errorf(task.StaleCounts, "queue mail has partitions 0 to 0"), NotFound, []string{"0 to 0", "partition list"}},
		{task.Errorf(task.NotReady, "loading"), Unavailable, []string{"try again"}},
		{task.Errorf(task.StoreUnavailable, "disk full"), Unavailable, []string{"disk full", "/readyz"}},
		{task.Errorf(task.OutcomeUnknown, "gave up waiting"), Unavailable, []string{"may or may not"}},
		{task.Errorf(task.Quota, "too many"), Unavailable, []string{"limit"}},
		{task.Errorf(task.Paused, "paused by ops"), Failure, []string{"paused by ops", "queue describe"}},
		{status.Error(codes.Unavailable, "connection reset"), Unavailable, []string{"127.0.0.1:1", "may or may not", "connection reset"}},
		{fmt.Errorf("%w: connection refused", client.ErrUnreachable), Unavailable, []string{"127.0.0.1:1", "taskring server", "connection refused"}},
		{status.Error(codes.Unimplemented, "unknown service"), Failure, []string{"a newer version"}},
		{context.Canceled, Interrupted, []string{"interrupted"}},
		{Usagef("no such flag"), Usage, []string{"no such flag"}},
	} {
		err := c.err
		if _, ok := errors.AsType[*task.Error](err); ok {
			err = wire.ToStatus(err)
		}
		got := Call(err, "adding", []string{"127.0.0.1:1"})
		if Of(got) != c.code {
			t.Errorf("%v gives code %d, want %d", c.err, Of(got), c.code)
		}
		for _, word := range c.says {
			if !strings.Contains(got.Error(), word) {
				t.Errorf("%v is explained as %q, which lacks %q", c.err, got, word)
			}
		}
	}
}

func TestOf(t *testing.T) {
	for want, err := range map[Code]error{
		OK:          nil,
		Failure:     errors.New("boom"),
		Usage:       fmt.Errorf("flags: %w", Usagef("bad")),
		Interrupted: fmt.Errorf("waiting: %w", context.Canceled),
	} {
		if got := Of(err); got != want {
			t.Errorf("Of(%v) = %d, want %d", err, got, want)
		}
	}
	if Call(nil, "x", nil) != nil {
		t.Error("Call makes an error of nil")
	}
}
