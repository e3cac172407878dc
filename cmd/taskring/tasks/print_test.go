package tasks

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
)

// peeked returns the table of a peek.
func peeked(t *testing.T, tasks ...*matchingpb.TaskDescription) string {
	t.Helper()
	var b bytes.Buffer
	if err := printTasks(&b, output.Table, tasks, true); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestPeekShowsWhenAndWhy: a scheduled task with the time until it is due, a dead
// one with its reason, and neither column when no task has use for it.
func TestPeekShowsWhenAndWhy(t *testing.T) {
	ready := &matchingpb.TaskDescription{Id: 1, State: matchingpb.TaskState_TASK_STATE_READY, Payload: []byte("r")}
	scheduled := &matchingpb.TaskDescription{
		Id: 2, State: matchingpb.TaskState_TASK_STATE_SCHEDULED, DueAt: timestamppb.New(time.Now().Add(time.Hour)), Payload: []byte("s"),
	}
	dead := &matchingpb.TaskDescription{Id: 3, State: matchingpb.TaskState_TASK_STATE_DEAD, DeadReason: "max attempts", Payload: []byte("d")}
	for name, c := range map[string]struct {
		tasks []*matchingpb.TaskDescription
		has   []string
		lacks []string
	}{
		"ready alone": {[]*matchingpb.TaskDescription{ready}, []string{"AGE  PAYLOAD"}, []string{titleDue, titleReason}},
		"scheduled":   {[]*matchingpb.TaskDescription{ready, scheduled}, []string{titleDue, "h0m0s  s\n"}, []string{titleReason}},
		"dead":        {[]*matchingpb.TaskDescription{dead}, []string{titleReason, "max attempts  d\n"}, []string{titleDue}},
		"nothing":     {nil, []string{"PAYLOAD"}, []string{titleDue, titleReason}},
	} {
		table := peeked(t, c.tasks...)
		for _, word := range c.has {
			if !strings.Contains(strings.ReplaceAll(table, "59m59s", "h0m0s"), word) {
				t.Errorf("%s: the table lacks %q:\n%s", name, word, table)
			}
		}
		for _, word := range c.lacks {
			if strings.Contains(table, word) {
				t.Errorf("%s: the table has %q:\n%s", name, word, table)
			}
		}
	}
}

func TestGetShowsLimits(t *testing.T) {
	for name, c := range map[string]struct {
		task *matchingpb.TaskDescription
		has  []string
	}{
		"of the node": {
			&matchingpb.TaskDescription{Id: 1}, []string{"max attempts  the node's setting", "lease         the node's setting", "durability    durable"},
		},
		"of its own": {
			&matchingpb.TaskDescription{Id: 1, Options: &matchingpb.TaskOptions{
				MaxAttempts: 4, LeaseDuration: durationpb.New(time.Minute), Durability: matchingpb.Durability_DURABILITY_HAND_OFF,
			}}, []string{"max attempts  4", "lease         1m0s", "durability    hand-off"},
		},
		"of its worker": {
			&matchingpb.TaskDescription{
				Id: 1, Options: &matchingpb.TaskOptions{LeaseDuration: durationpb.New(time.Minute)},
				Lease: &matchingpb.LeaseDescription{Identity: "w", LeaseDuration: durationpb.New(5 * time.Second)},
			}, []string{"lease         5s", "worker        w"},
		},
		"due": {
			&matchingpb.TaskDescription{
				Id: 1, State: matchingpb.TaskState_TASK_STATE_SCHEDULED, DueAt: timestamppb.New(time.Now().Add(-time.Second)),
			}, []string{"(now)"},
		},
	} {
		var b bytes.Buffer
		if err := printTask(&b, output.Table, c.task); err != nil {
			t.Fatal(err)
		}
		for _, line := range c.has {
			if !strings.Contains(b.String(), line) {
				t.Errorf("%s: it lacks %q:\n%s", name, line, b.String())
			}
		}
	}
}

func TestResumeHint(t *testing.T) {
	for name, c := range map[string]struct {
		done account
		bad  bool
		has  []string
	}{
		"first":          {account{Resume: 1}, false, []string{"no line", "go on from line 1: tail -n +1 "}},
		"second":         {account{Resume: 2, Added: 1}, false, []string{"line 1 is surely added", "tail -n +2 "}},
		"bad line":       {account{Resume: 3, Added: 2}, true, []string{"lines 1 to 2", "mend line 3", "skip it and go on from line 4: tail -n +4 "}},
		"added behind":   {account{Resume: 3, Added: 3, Behind: 1}, false, []string{"1 line behind line 3"}},
		"answers lost":   {account{Resume: 3, Added: 2, Unknown: 2}, false, []string{"answer for 2 lines was lost"}},
		"nothing behind": {account{Resume: 9}, false, nil},
	} {
		hint := resumeHint(c.done, c.bad)
		for _, words := range c.has {
			if !strings.Contains(hint, words) {
				t.Errorf("%s: %q lacks %q", name, hint, words)
			}
		}
		if !c.bad && strings.Contains(hint, "mend") {
			t.Errorf("%s: a line that is right is to be mended: %q", name, hint)
		}
	}
}
