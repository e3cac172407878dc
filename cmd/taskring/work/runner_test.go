package work

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/task"
)

// perform runs a command for one task and returns what it wrote and the reason
// of a failure.
func perform(t *testing.T, payload string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	r := newRunner(args, &out, &diagnostics)
	err = r.handle(t.Context(), &client.Task{ID: task.MakeID(1, 2), Attempt: 3, Delivery: 4, Payload: []byte(payload)})
	if len(r.groups) != 0 {
		t.Errorf("process groups are left: %v", r.groups)
	}
	return out.String(), diagnostics.String(), err
}

func TestHandle(t *testing.T) {
	for name, c := range map[string]struct {
		payload string
		args    []string
		stdout  string
		failure string // what the error has to say; empty: none
	}{
		"no command":            {"hello", nil, "hello\n", ""},
		"stdin":                 {"hello\n", []string{"cat"}, "hello\n", ""},
		"argument":              {"a b", []string{"printf", "<%s>", "x{}y{}"}, "<xa bya b>\n", ""},
		"no shell in between":   {"$(id); `id`", []string{"echo", "{}"}, "$(id); `id`\n", ""},
		"environment":           {"", []string{"sh", "-c", "echo $TASKRING_TASK_ID $TASKRING_TASK_ATTEMPT $TASKRING_TASK_DELIVERY"}, "1099511627778 3 4\n", ""},
		"stdin nobody reads":    {strings.Repeat("x", 1<<20), []string{"true"}, "", ""},
		"exit code":             {"", []string{"sh", "-c", "exit 3"}, "", "exit status 3"},
		"reason":                {"", []string{"sh", "-c", "echo why >&2; exit 3"}, "", "exit status 3: why"},
		"output before failure": {"", []string{"sh", "-c", "echo out; echo why >&2; false"}, "out\n", "why"},
		"zero byte in argument": {"a\x00b", []string{"echo", "{}"}, "", "zero byte"},
		"zero byte on stdin":    {"a\x00b", []string{"wc", "-c"}, "3\n", ""},
		"argument too long":     {strings.Repeat("x", 1<<20), []string{"echo", "{}"}, "", "starting the command"},
	} {
		t.Run(name, func(t *testing.T) {
			stdout, _, err := perform(t, c.payload, c.args...)
			if stdout != c.stdout {
				t.Errorf("stdout is %q, want %q", stdout, c.stdout)
			}
			if (err != nil) != (c.failure != "") || err != nil && !strings.Contains(err.Error(), c.failure) {
				t.Errorf("the failure is %v, want %q", err, c.failure)
			}
		})
	}
}

func TestReasonIsTheEndOfStderr(t *testing.T) {
	_, stderr, err := perform(t, "", "sh", "-c", "i=0; while [ $i -lt 1000 ]; do echo line $i >&2; i=$((i+1)); done; exit 1")
	if err == nil || !strings.HasSuffix(err.Error(), "line 998\nline 999") || len(err.Error()) > reasonSize+100 {
		t.Errorf("the reason has %d bytes and is %v", len(err.Error()), err)
	}
	if !strings.HasPrefix(stderr, "line 0\n") {
		t.Errorf("stderr begins with %.20q, want all of it passed on", stderr)
	}
}

var errLost = errors.New("the lease is lost")

// longTask is the id of the task that startLong works on.
const longTask task.ID = 1<<40 + 5

// startLong runs a command that never ends by itself, and returns once it has
// said the process ids of itself and of a process of its own.
func startLong(t *testing.T, script string) (r *runner, lose func(), pids []int, ended chan error) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready")
	if err := syscall.Mkfifo(ready, 0o600); err != nil {
		t.Fatal(err)
	}
	r = newRunner([]string{"sh", "-c", script, "sh", ready}, &bytes.Buffer{}, &bytes.Buffer{})
	ctx, cancel := context.WithCancelCause(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- r.handle(ctx, &client.Task{ID: longTask}) }()
	said, err := os.ReadFile(ready) // waits for the writer
	if err != nil {
		t.Fatal(err)
	}
	for word := range strings.FieldsSeq(string(said)) {
		var pid int
		for _, digit := range word {
			pid = 10*pid + int(digit-'0')
		}
		pids = append(pids, pid)
	}
	if len(pids) != 2 {
		t.Fatalf("the command said %q", said)
	}
	return r, func() { cancel(errLost) }, pids, ended
}

func TestLostLeaseEndsTheWholeGroup(t *testing.T) {
	_, lose, pids, ended := startLong(t, `sleep 1000 & echo $$ $! >"$1"; wait`)
	lose()
	if err := <-ended; !errors.Is(err, errLost) {
		t.Errorf("the handler ends with %v, want %v", err, errLost)
	}
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
}

func TestKillAllEndsWhatRunsAndRefusesMore(t *testing.T) {
	r, _, pids, ended := startLong(t, `trap '' TERM; sleep 1000 & echo $$ $! >"$1"; wait`)
	if killed := r.killAll(); !slices.Equal(killed, []task.ID{longTask}) {
		t.Errorf("killed %v, want %v", killed, longTask)
	}
	if err := <-ended; err == nil {
		t.Error("a task that was killed counts as done")
	}
	for _, pid := range pids {
		awaitEnd(t, pid)
	}
	if err := r.handle(t.Context(), &client.Task{}); err == nil || !strings.Contains(err.Error(), "ending") {
		t.Errorf("a task that comes later gives %v", err)
	}
}

// awaitEnd waits until a process that was killed is gone.
func awaitEnd(t *testing.T, pid int) {
	t.Helper()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for deadline := time.Now().Add(killAfter / 2); alive(pid); <-ticker.C {
		if time.Now().After(deadline) {
			t.Fatalf("process %d of the group lives on", pid)
		}
	}
}

// alive reports whether a process runs. One that ended and that nobody has
// waited for yet does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", task.ID(pid).String(), "stat"))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return fields[0] != "Z" && fields[0] != "X"
}
