package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/matching/store/pebble"
)

// invoke runs the command in this process.
func invoke(t *testing.T, args ...string) (code exit.Code, stdout, stderr string) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	cmd := root()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&out)
	cmd.SetErr(&diagnostics)
	code = run(t.Context(), cmd, &diagnostics)
	return code, out.String(), diagnostics.String()
}

func TestUsageErrors(t *testing.T) {
	t.Setenv("TASKRING_GRPC_ADDR", "")
	for _, c := range []struct {
		args string
		says string
	}{
		{"bogus", `unknown command "bogus"`},
		{"task bogus", `unknown command "bogus"`},
		{"task add --bogus", "--bogus"},
		{"task add --payload x", "--queue NAME"},
		{"task add --queue q", "--payload, --payload-file or --lines"},
		{"task add --queue q --payload x --lines", "only one of"},
		{"task add --queue q --payload x --request-id r", "there is no flag --request-id"},
		{"task add --queue q --payload x --delay 10d", "10d is 240h"},
		{"task add --queue q --payload x --priority high", `--priority "high" is not a whole number`},
		{"task get -1 --queue q", "behind --"},
		{"task add --queue q --payload x --address=", "--address"},
		{"queue list --address=", "--address"},
		{"bench --address=", "--address"},
		{"bench --tasks 0", "--tasks 0"},
		{"server --grpc-addr foo", "--grpc-addr"},
		{"server --http-addr 127.0.0.1:x", "--http-addr"},
		{"server --log-level loud", "debug, info, warn, error"},
		{"frontend --nodes 127.0.0.1:1 --grpc-addr foo", "--grpc-addr"},
		{"task add --queue q --lines --outstanding 0", "--outstanding 0"},
		{"task add --queue q --payload x --address nowhere", "HOST:PORT"},
		{"task add --queue q --payload x --type bogus", "activity"},
		{"task add --queue q --payload x -o xml", "json, table"},
		{"task add --queue q --payload-file /nonexistent", "no such file"},
		{"task get --queue q", "ID is missing"},
		{"task get --queue q seven", "seven"},
		{"task peek --queue q --state lost", "ready, scheduled, leased, dead"},
		{"task peek --queue q --limit -1", "--limit"},
		{"work --queue q true", "-- true"},
		{"work --queue q --concurrency 0", "--concurrency 0"},
		{"work --queue q -- no-such-program", "no-such-program"},
		{"work --queue q --lease 1ms", "lease"},
		{"partition describe x --queue q", "x"},
		{"queue list --type bogus", "--type"},
		{"queue describe", "--queue NAME"},
		{"bench --mode sprint", "flow, backlog, latency"},
		{"server --shutdown-timeout 0s", "--shutdown-timeout"},
		{"server --log-format xml", "json, text"},
		{"server extra", "extra"},
	} {
		code, stdout, stderr := invoke(t, strings.Fields(c.args)...)
		if code != exit.Usage || !strings.Contains(strings.ToLower(stderr), strings.ToLower(c.says)) || stdout != "" {
			t.Errorf("taskring %s: code %d, stderr %q, stdout %q; want code %d and %q on stderr",
				c.args, code, stderr, stdout, exit.Usage, c.says)
		}
	}
}

func TestBadVariable(t *testing.T) {
	t.Setenv("TASKRING_SHUTDOWN_TIMEOUT", "soon")
	code, _, stderr := invoke(t, "server")
	if code != exit.Usage || !strings.Contains(stderr, "TASKRING_SHUTDOWN_TIMEOUT") {
		t.Errorf("code %d, %q", code, stderr)
	}
}

func TestNoNodeThere(t *testing.T) {
	for _, args := range []string{"task add --queue q --payload x", "queue list", "task peek --queue q", "bench --tasks 1"} {
		code, _, stderr := invoke(t, strings.Fields(args+" --address 127.0.0.1:1")...)
		if code != exit.Unavailable || !strings.Contains(stderr, "127.0.0.1:1") || !strings.Contains(stderr, "taskring server") {
			t.Errorf("taskring %s: code %d, %q", args, code, stderr)
		}
	}
}

func TestServerCannotStart(t *testing.T) {
	n := startNode(limit(t, time.Minute), t)
	code, _, stderr := invoke(t, "server", "--data-dir", t.TempDir(), "--grpc-addr", n.GRPCAddr, "--http-addr", "127.0.0.1:0")
	if code != exit.Failure || !strings.Contains(stderr, "--grpc-addr") {
		t.Errorf("on a taken port: code %d, %q", code, stderr)
	}
	code, _, stderr = invoke(t, "server", "--data-dir", n.dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0")
	if code != exit.Failure || !strings.Contains(stderr, n.dir) {
		t.Errorf("on a directory in use: code %d, %q", code, stderr)
	}
}

func TestHelp(t *testing.T) {
	if code, out, _ := invoke(t, "help", "exit-codes"); code != exit.OK || !strings.Contains(out, " 74  ") {
		t.Errorf("help exit-codes: code %d, %q", code, out)
	}
	if exit.StoreBroken != pebble.ExitStoreBroken {
		t.Errorf("the table of exit codes has %d for a broken store, the store ends with %d", exit.StoreBroken, pebble.ExitStoreBroken)
	}
	if code, out, _ := invoke(t, "task"); code != exit.OK || !strings.Contains(out, "peek") {
		t.Errorf("a command of commands shows no help: code %d, %q", code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, out, _ := invoke(t, "completion", shell); code != exit.OK || !strings.Contains(out, "taskring") {
			t.Errorf("completion %s: code %d, %d bytes", shell, code, len(out))
		}
	}
}

// TestEveryCommandIsExplained wants a sentence for each command and each flag,
// an example for each that does something, and lines of 80 columns in texts.
func TestEveryCommandIsExplained(t *testing.T) {
	var visit func(*cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Short == "" {
			t.Errorf("%s has no description", cmd.CommandPath())
		}
		if cmd.RunE != nil && !cmd.HasSubCommands() && cmd.Example == "" && cmd.Name() != "version" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long + "\n" + cmd.Example) {
			if len(strings.TrimSuffix(line, "\n")) > 80 {
				t.Errorf("%s has a line of %d columns: %s", cmd.CommandPath(), len(line)-1, line)
			}
		}
		for _, below := range cmd.Commands() {
			visit(below)
		}
	}
	visit(root())
}

func TestVersion(t *testing.T) {
	_, line, _ := invoke(t, "version")
	if code, out, _ := invoke(t, "--version"); code != exit.OK || out != line || line == "" {
		t.Errorf("--version: code %d, %q, the command says %q", code, out, line)
	}
	code, out, _ := invoke(t, "version", "-o", "json")
	var b build
	if err := json.Unmarshal([]byte(out), &b); code != exit.OK || err != nil || b.Version == "" || b.Go == "" {
		t.Errorf("code %d, %q, %v", code, out, err)
	}
}

// TestLookingAround adds tasks in all ways and looks at them in all ways.
func TestLookingAround(t *testing.T) {
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t)
	if got := n.output(ctx, "queue", "list", "-o", "json"); got != "" {
		t.Errorf("an empty node lists %q", got)
	}
	var added struct {
		ID        string `json:"id"`
		Partition int32  `json:"partition"`
	}
	decode(t, n.output(ctx, "task", "add", "--queue", "q", "--payload", "first", "--header", "a=b", "-o", "json"), &added)
	n.output(ctx, "task", "add", "--queue", "q", "--payload", "later", "--delay", "1h")

	var shown struct {
		ID, State, Payload string
		Headers            map[string]string
	}
	decode(t, n.output(ctx, "task", "get", added.ID, "--queue", "q", "-o", "json"), &shown)
	if shown.ID != added.ID || shown.State != "ready" || shown.Payload != "first" || shown.Headers["a"] != "b" {
		t.Errorf("task get shows %+v", shown)
	}
	for args, words := range map[string][]string{
		"task get " + added.ID + " --queue q":    {"first", "ready", "header a"},
		"task peek --queue q":                    {"PAYLOAD", "first", "later", "scheduled"},
		"task peek --queue q --state ready":      {"first"},
		"queue list":                             {"NAME", "q", "activity"},
		"queue describe --queue q":               {"ready", "scheduled", "default/q", "PART"},
		"partition list --queue q":               {"PART", "yes"},
		"partition describe 0 --queue q":         {"epoch", "loaded"},
		"queue describe --queue q -o json":       {`"ready":1`, `"scheduled":1`},
		"partition list --queue q -o json":       {`"partition":0`, `"epoch":"1"`},
		"partition describe 0 --queue q -o json": {`"loaded":true`},
		"queue list --prefix q -o json":          {`"name":"q"`, `"ready":1`},
	} {
		out := n.output(ctx, strings.Fields(args)...)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("taskring %s lacks %q:\n%s", args, word, out)
			}
		}
	}
	if out := n.output(ctx, "task", "peek", "--queue", "q", "--limit", "1", "-o", "json"); strings.Count(out, "\n") != 1 {
		t.Errorf("peek --limit 1 shows:\n%s", out)
	}
	if got := n.output(ctx, "work", "--queue", "q", "--max-tasks", "1"); got != "first\n" {
		t.Errorf("work prints %q", got)
	}
	code, stderr := codeOf(t, n.command(ctx, "task", "get", added.ID, "--queue", "q"))
	if code != exit.NotFound {
		t.Errorf("a finished task: code %d, %q, want %d", code, stderr, exit.NotFound)
	}
	code, stderr = codeOf(t, n.command(ctx, "task", "add", "--queue", "q", "--payload", "x", "--priority", "9"))
	if code != exit.Usage || !strings.Contains(stderr, "priority") {
		t.Errorf("a bad priority: code %d, %q, want %d", code, stderr, exit.Usage)
	}
}

// TestUnknownQueue: looking at what is not there is told apart from failing, and
// waiting for work there ends as waiting at an empty queue does.
func TestUnknownQueue(t *testing.T) {
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t)
	for _, args := range []string{"queue describe --queue typo", "task peek --queue typo", "task get 1099511627777 --queue typo"} {
		if code, stderr := codeOf(t, n.command(ctx, strings.Fields(args)...)); code != exit.NotFound {
			t.Errorf("taskring %s: code %d, %q, want %d", args, code, stderr, exit.NotFound)
		}
	}
	n.output(ctx, "task", "add", "--queue", "q", "--payload", "x")
	if code, stderr := codeOf(t, n.command(ctx, "partition", "describe", "7", "--queue", "q")); code != exit.NotFound || strings.Contains(stderr, "taskring server") {
		t.Errorf("a partition that is not there: code %d, %q, want %d", code, stderr, exit.NotFound)
	}
	if code, stderr := codeOf(t, n.command(ctx, "work", "--queue", "typo", "--idle-exit", "100ms")); code != exit.OK {
		t.Errorf("work: code %d, %q", code, stderr)
	}
}

// TestWorkSaysWhatFollows: a failure is told with what follows, and a task that
// is due only later keeps nobody waiting.
func TestWorkSaysWhatFollows(t *testing.T) {
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t)
	n.output(ctx, "task", "add", "--queue", "q", "--payload", "later", "--delay", "1h")
	n.output(ctx, "task", "add", "--queue", "q", "--payload", "x", "--max-attempts", "1")
	code, stderr := codeOf(t, n.command(ctx, "work", "--queue", "q", "--idle-exit", "200ms", "--", "sh", "-c", "echo why >&2; exit 3"))
	if code != exit.OK {
		t.Errorf("code %d, want %d: failed tasks are not the worker's failure", code, exit.OK)
	}
	for _, words := range []string{"failed, attempt 1: the command ended with exit status 3: why; it is a dead letter now", "1 scheduled task left for later", "0 tasks completed, 1 failed"} {
		if !strings.Contains(stderr, words) {
			t.Errorf("the worker does not say %q:\n%s", words, stderr)
		}
	}
	if out := n.output(ctx, "task", "peek", "--queue", "q", "--state", "dead"); !strings.Contains(out, "REASON") {
		t.Errorf("peek does not say why a task died:\n%s", out)
	}
	if out := n.output(ctx, "queue", "describe", "--queue", "q"); !strings.Contains(out, "1, the next due in ") {
		t.Errorf("describe does not say when the next task is due:\n%s", out)
	}
	if out := n.output(ctx, "__complete", "work", "--queue", ""); !strings.HasPrefix(out, "q\n") {
		t.Errorf("the shell completes --queue with %q", out)
	}
}

// decode reads one line of JSON.
func decode(t *testing.T, line string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(line), into); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
}

// codeOf runs a process to its end and returns its exit code and last words.
func codeOf(t *testing.T, cmd *exec.Cmd) (exit.Code, string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr, cmd.Stdout = &stderr, io.Discard
	err := cmd.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return exit.Code(cmd.ProcessState.ExitCode()), stderr.String()
}
