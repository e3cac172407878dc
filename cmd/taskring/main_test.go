package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/child"
	"github.com/taskring/taskring/partition"
)

// asCommand makes the test binary run as the command: the process tests then
// need no second build, and with -race the processes are watched too.
const asCommand = "TASKRING_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	if err := os.Setenv(asCommand, "1"); err != nil { // for every process that the tests start
		panic(err)
	}
	os.Exit(m.Run())
}

// long reports whether the tests may take their time.
func long() bool { return os.Getenv("TASKRING_LONG") != "" }

// limit returns a context that ends after so long, or the test before.
func limit(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// node is a server process that can be killed and started again on the same
// directory and at the same address.
type node struct {
	*child.Server

	t    *testing.T
	dir  string
	args []string
}

// startNode starts a server on an empty directory. It is killed in the end.
func startNode(ctx context.Context, t *testing.T, args ...string) *node {
	t.Helper()
	n := &node{t: t, dir: filepath.Join(t.TempDir(), "data"), args: args}
	n.start(ctx, "127.0.0.1:0")
	t.Cleanup(func() {
		n.Kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", n.Log())
		}
	})
	return n
}

func (n *node) start(ctx context.Context, grpcAddr string) {
	n.t.Helper()
	s, err := child.Start(ctx, self(), append([]string{"--data-dir", n.dir, "--grpc-addr", grpcAddr}, n.args...)...)
	if err != nil {
		n.t.Fatal(err)
	}
	n.Server = s
}

// restart kills the server as kill -9 does and starts it again.
func (n *node) restart(ctx context.Context) {
	n.t.Helper()
	n.Kill()
	n.start(ctx, n.GRPCAddr)
}

// client returns a client of the node.
func (n *node) client() *client.Client {
	n.t.Helper()
	c, err := client.NewClient(client.Options{Addresses: []string{n.GRPCAddr}, Identity: n.t.Name()})
	if err != nil {
		n.t.Fatal(err)
	}
	n.t.Cleanup(c.Stop)
	return c
}

// command is a run of the command against the node.
func (n *node) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, self(), args...) //nolint:gosec // the test binary itself
	cmd.Env = append(os.Environ(), "TASKRING_ADDRESS="+n.GRPCAddr)
	return cmd
}

// output runs the command against the node and returns what it printed; it has
// to succeed.
func (n *node) output(ctx context.Context, args ...string) string {
	n.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := n.command(ctx, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		n.t.Fatalf("taskring %q: %v\n%s", args, err, stderr.String())
	}
	return stdout.String()
}

// self is the binary that runs as the command.
func self() string {
	binary, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return binary
}

func queueNamed(name string) partition.Queue {
	return partition.Queue{Namespace: "default", Name: name, Type: partition.Activity}
}
