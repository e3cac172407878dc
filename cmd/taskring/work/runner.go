package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/task"
)

const (
	// killAfter is how long a process group has between SIGTERM and SIGKILL.
	killAfter = 5 * time.Second
	// reasonSize is how much of the end of standard error becomes the reason
	// of a failure, in bytes.
	reasonSize = 1 << 10
	// placeholder is replaced by the payload in the arguments.
	placeholder = "{}"
)

// runner runs the command for tasks, any number at a time.
type runner struct {
	args           []string // empty: print the payload
	stdout, stderr *lines

	mu     sync.Mutex
	groups map[int]task.ID // process groups that run, with their tasks; guarded by mu
}

func newRunner(args []string, stdout, stderr io.Writer) *runner {
	return &runner{args: args, stdout: &lines{w: stdout}, stderr: &lines{w: stderr}, groups: map[int]task.ID{}}
}

// handle works on one task; its error is the reason of the failure.
func (r *runner) handle(ctx context.Context, t *client.Task) error {
	if len(r.args) == 0 {
		return r.stdout.writeWhole(append(bytes.Clone(t.Payload), '\n'))
	}
	args, err := expand(r.args, t.Payload)
	if err != nil {
		return client.NonRetryable(err)
	}
	reason := &tail{limit: reasonSize}
	out, diagnostics := &taskOutput{shared: r.stdout}, &taskOutput{shared: r.stderr}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...) //nolint:gosec // what to run is for the caller to say
	cmd.Stdin = bytes.NewReader(t.Payload)
	cmd.Stdout = out
	cmd.Stderr = io.MultiWriter(reason, diagnostics)
	cmd.Env = append(os.Environ(),
		"TASKRING_TASK_ID="+t.ID.String(),
		"TASKRING_TASK_ATTEMPT="+strconv.Itoa(t.Attempt),
		"TASKRING_TASK_DELIVERY="+strconv.Itoa(t.Delivery),
	)
	err = r.runGroup(ctx, t.ID, cmd)
	return failure(errors.Join(err, out.flush(), diagnostics.flush()), reason.end)
}

// expand puts the payload where the arguments have the placeholder.
func expand(args []string, payload []byte) ([]string, error) {
	expanded := make([]string, len(args))
	for i, arg := range args {
		if strings.Contains(arg, placeholder) && bytes.IndexByte(payload, 0) >= 0 {
			return nil, errors.New("the payload holds a zero byte and cannot be an argument; read it from standard input")
		}
		expanded[i] = strings.ReplaceAll(arg, placeholder, string(payload))
	}
	return expanded, nil
}

// runGroup runs cmd as the leader of a process group, which is ended when ctx
// ends. Processes that the leader leaves behind are not waited for.
func (r *runner) runGroup(ctx context.Context, id task.ID, cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = killAfter + time.Second
	var kill *time.Timer
	cmd.Cancel = func() error {
		group := cmd.Process.Pid
		kill = time.AfterFunc(killAfter, func() { signalGroup(group, syscall.SIGKILL) })
		signalGroup(group, syscall.SIGTERM)
		return nil
	}
	if err := r.start(id, cmd); err != nil {
		return err
	}
	err := cmd.Wait()
	r.ended(cmd.Process.Pid)
	if kill != nil {
		kill.Stop()
		signalGroup(cmd.Process.Pid, syscall.SIGKILL) // what the leader left behind
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		return nil // the leader ended well, something it left behind holds its output
	}
	if err != nil {
		return fmt.Errorf("the command ended with %w", err)
	}
	return nil
}

// start starts cmd and records its group in one step, so that [runner.killAll]
// misses none.
func (r *runner) start(id task.ID, cmd *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups == nil {
		return errors.New("the worker is ending")
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the command: %w", err)
	}
	r.groups[cmd.Process.Pid] = id
	return nil
}

func (r *runner) ended(group int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.groups, group)
}

// killAll kills what runs and returns whose tasks it was, ascending; nothing is
// started any more.
func (r *runner) killAll() []task.ID {
	r.mu.Lock()
	defer r.mu.Unlock()
	for group := range r.groups {
		signalGroup(group, syscall.SIGKILL)
	}
	killed := slices.Sorted(maps.Values(r.groups))
	r.groups = nil
	return killed
}

// signalGroup signals every process of a group; one that is gone needs none.
func signalGroup(group int, s syscall.Signal) { _ = syscall.Kill(-group, s) }

// failure returns the reason of a failed task: how its command ended, and the
// end of what it wrote to standard error.
func failure(err error, end []byte) error {
	if err == nil {
		return nil
	}
	said := strings.ToValidUTF8(strings.TrimSpace(string(end)), "")
	if said == "" {
		return err
	}
	return &failedError{err: err, said: said}
}

// failedError is the failure of a command that said something.
type failedError struct {
	err  error
	said string
}

func (e *failedError) Error() string { return e.err.Error() + ": " + e.said }
func (e *failedError) Unwrap() error { return e.err }

// shortReason is a failure on one line: of what the command said, the last line.
func shortReason(err error) string {
	const most = 200 // characters
	text := err.Error()
	if said, ok := errors.AsType[*failedError](err); ok {
		text = said.err.Error() + ": " + said.said[strings.LastIndexByte(said.said, '\n')+1:]
	}
	return output.Shorten(output.Text([]byte(text)), most)
}
