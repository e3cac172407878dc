package tour

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestSteps(t *testing.T) {
	text := "x\n```console\n$ not in the tour\n```\n<!-- tour -->\n```console\n$ first\na …\n…\n$ second\n```\n$ outside\n"
	steps := Steps(text)
	if len(steps) != 2 || steps[0].Command != "first" || steps[1].Command != "second" || steps[0].Line != 7 || len(steps[0].Output) != 2 {
		t.Fatalf("steps are %+v", steps)
	}
	for output, want := range map[string]bool{"a 1\n": true, "a 1\nb\nc\n": true, "b\n": false, "": false, "xa 1\n": false} {
		if steps[0].Matches(output) != want {
			t.Errorf("Matches(%q) is not %v", output, want)
		}
	}
	if !steps[1].Matches("") || steps[1].Matches("x\n") {
		t.Error("a command without output must print nothing")
	}
}

// TestReadme takes the tour.
func TestReadme(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := Steps(string(readme))
	if len(steps) < 10 {
		t.Fatalf("the tour has only %d steps", len(steps))
	}
	dir := t.TempDir()
	binary := buildCommand(t, top, dir)
	env := append(os.Environ(), "TASKRING_ADDRESS="+startNode(t, binary, dir), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"), "LC_ALL=C.UTF-8")
	for _, s := range steps {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		cmd := exec.CommandContext(ctx, "bash", "-c", s.Command) //nolint:gosec // the commands are those of the README
		cmd.Dir, cmd.Env = dir, env
		out, err := cmd.CombinedOutput()
		cancel()
		if err != nil || !s.Matches(string(out)) {
			t.Fatalf("README.md:%d: %s\nends with %v and prints\n%s\nbut the README shows\n%s", s.Line, s.Command, err, out, strings.Join(s.Output, "\n"))
		}
	}
}

const (
	exampleFile = "docs/examples/hello/main.go"
	exampleAddr = "127.0.0.1:7233"
)

// TestProgram: the README shows the example whole, and it does what it says
// against a node of the test's own, whose address stands in for the usual one.
func TestProgram(t *testing.T) {
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(filepath.Join(top, exampleFile))
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(readme, []byte("```go\n"+string(program)+"```\n")) {
		t.Errorf("README.md does not show %s as it is: copy it there", exampleFile)
	}
	dir := t.TempDir()
	address := startNode(t, buildCommand(t, top, dir), dir)
	if bytes.Count(program, []byte(exampleAddr)) != 1 {
		t.Fatalf("%s does not name %s once", exampleFile, exampleAddr)
	}
	moved := filepath.Join(dir, "main.go")
	//nolint:gosec // the file is below the test's own directory
	if err := os.WriteFile(moved, bytes.ReplaceAll(program, []byte(exampleAddr), []byte(address)), 0o600); err != nil {
		t.Fatal(err)
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(top, exampleFile): moved}})
	if err != nil {
		t.Fatal(err)
	}
	overlayFile := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(overlayFile, overlay, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	//nolint:gosec // the program is one of the tree
	cmd := exec.CommandContext(ctx, "go", "run", "-overlay", overlayFile, "./"+filepath.Dir(exampleFile))
	cmd.Dir = top
	if out, err := cmd.CombinedOutput(); err != nil || string(out) != "hello, world\n" {
		t.Errorf("%s ends with %v and prints\n%s", exampleFile, err, out)
	}
}

// buildCommand builds the command below dir and returns its path.
func buildCommand(t *testing.T, top, dir string) string {
	t.Helper()
	binary := filepath.Join(dir, "bin", "taskring")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "./cmd/taskring") //nolint:gosec // the path is the test's own
	build.Dir = top
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return binary
}

// startNode runs a node for the tour and returns its address.
func startNode(t *testing.T, binary, dir string) string {
	t.Helper()
	//nolint:gosec // the binary was built by the test; it is ended by a signal, not with a context
	cmd := exec.CommandContext(context.Background(), binary, "server", "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--data-dir", filepath.Join(dir, "data"))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			t.Errorf("the node ends with %v\n%s", err, log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the node does not get ready: %v\n%s", err, log.String())
	}
	var ready struct {
		Address string `json:"grpc_addr"`
	}
	if err := json.Unmarshal(line, &ready); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return ready.Address
}
