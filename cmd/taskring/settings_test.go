package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/cmd/taskring/child"
	"github.com/taskring/taskring/cmd/taskring/exit"
)

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// nodeShown is what `node describe -o json` prints, in part.
type nodeShown struct {
	Version  string
	Settings struct{ Hash, Path, Failing string }
	Loaded   int `json:"loaded_partitions"`
}

// TestOneFileTunesARunningNode takes the way of an operator: start with a file,
// look, change it, make a mistake, and correct it.
func TestOneFileTunesARunningNode(t *testing.T) {
	ctx := limit(t, time.Minute)
	path := filepath.Join(t.TempDir(), "settings.yaml")
	writeFile(t, path, "matching.maxPayloadBytes: 10B\n")
	n := startNode(ctx, t, "--dynamic-config", path)
	describe := func() (d nodeShown) {
		decode(t, n.output(ctx, "node", "describe", "-o", "json"), &d)
		return d
	}
	until := func(what string, ok func(nodeShown) bool) {
		for !ok(describe()) {
			if ctx.Err() != nil {
				t.Fatalf("%s: not in time", what)
			}
		}
	}
	first := describe()
	if first.Settings.Hash == "" || first.Settings.Path != path || first.Version == "" {
		t.Errorf("node describe shows %+v", first)
	}
	code, stderr := codeOf(t, n.command(ctx, "task", "add", "--queue", "q", "--payload", strings.Repeat("x", 11)))
	if code != exit.Usage || !strings.Contains(stderr, "matching.maxPayloadBytes") {
		t.Errorf("a payload over the limit of the file: code %d, %q", code, stderr)
	}

	writeFile(t, path, "matching.maxPayloadBytes: 20B\nmatching.numTaskqueueWritePartitions: [{value: 2, constraints: {taskQueueName: q}}]\n")
	until("a change", func(d nodeShown) bool { return d.Settings.Hash != first.Settings.Hash })
	n.output(ctx, "task", "add", "--queue", "q", "--payload", strings.Repeat("x", 11))
	if out := n.output(ctx, "queue", "describe", "--queue", "q", "-o", "json"); !strings.Contains(out, `"write_partitions":2`) {
		t.Errorf("the queue has other partitions:\n%s", out)
	}
	second := describe()

	writeFile(t, path, "matching.maxPayload: 30B\n")
	until("a mistake", func(d nodeShown) bool { return d.Settings.Failing != "" })
	if d := describe(); d.Settings.Hash != second.Settings.Hash || !strings.Contains(d.Settings.Failing, `did you mean "matching.maxPayloadBytes"`) {
		t.Errorf("with a mistake node describe shows %+v", d)
	}
	for args, words := range map[string][]string{
		"config show":       {second.Settings.Hash, path, "refused", "matching.maxPayloadBytes", "  20  ", "{taskQueueName: q}"},
		"config show --all": {"matching.maxLeases", "(default)", "client.batching"},
		"config explain matching.numtaskqueueWritePartitions --queue q": {"value      2", "line 2, {taskQueueName: q}"},
		"config explain matching.maxLeases -o json":                     {`"is_default":true`, `"value":"100000"`},
		"node describe --partitions":                                    {"loaded", "NAMESPACE", "did you mean"},
	} {
		out := n.output(ctx, strings.Fields(args)...)
		for _, word := range words {
			if !strings.Contains(out, word) {
				t.Errorf("taskring %s lacks %q:\n%s", args, word, out)
			}
		}
	}
	code, stderr = codeOf(t, n.command(ctx, "config", "explain", "matching.maxLease"))
	if code != exit.Usage || !strings.Contains(stderr, "did you mean") {
		t.Errorf("explaining an unknown key: code %d, %q", code, stderr)
	}

	writeFile(t, path, "matching.maxPayloadBytes: 30B\n")
	until("the correction", func(d nodeShown) bool { return d.Settings.Failing == "" })
	n.output(ctx, "task", "add", "--queue", "q", "--payload", strings.Repeat("x", 30))
	for _, want := range []string{"dynamic setting changed", "key=matching.maxPayloadBytes", "old=20", "new=30", "dynamic settings are refused"} {
		if !strings.Contains(n.Log(), want) {
			t.Errorf("the log lacks %q:\n%s", want, n.Log())
		}
	}
}

// TestStartWithAMistake: a server refuses to start on a wrong file and says what
// to do; it starts on the defaults when it is told to.
func TestStartWithAMistake(t *testing.T) {
	ctx := limit(t, time.Minute)
	dir := t.TempDir()
	path := filepath.Join(dir, "settings.yaml")
	writeFile(t, path, "matching.maxLease: 5\n")
	start := func(ctx context.Context, args ...string) (*child.Server, error) {
		return child.Start(ctx, self(), append([]string{"--data-dir", filepath.Join(dir, "data"), "--dynamic-config", path}, args...)...)
	}
	s, err := start(ctx)
	if err == nil {
		s.Kill()
		t.Fatal("the server starts on a file with a mistake")
	}
	for _, want := range []string{"line 1", "matching.maxLeases", "config validate " + path, "--dynamic-config-on-error"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal lacks %q: %v", want, err)
		}
	}
	if s, err = start(ctx, "--dynamic-config-on-error", "defaults"); err != nil {
		t.Fatal(err)
	}
	defer s.Kill()
	if status, body := page(ctx, t, s.HTTPAddr, "/readyz"); status != 200 || !strings.Contains(body, "all defaults are in force") {
		t.Errorf("/readyz = %d %q", status, body)
	}
}
