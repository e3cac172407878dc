package main

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
)

// TestStopWithManyWaitingPolls: each poll ends with an answer that says why, and
// the server well within its bound.
func TestStopWithManyWaitingPolls(t *testing.T) {
	const polls, bound = 1000, 10 * time.Second
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t, "--shutdown-timeout", bound.String())
	conn, err := grpc.NewClient(n.GRPCAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	c := matchingpb.NewMatchingServiceClient(conn)
	root := wire.EncodePartition(queueNamed("q").Partition(0))
	var open sync.WaitGroup
	for i := range polls {
		open.Go(func() {
			reply, err := c.PollTask(ctx, &matchingpb.PollTaskRequest{
				TaskQueue: root, PollId: strconv.Itoa(i), Wait: durationpb.New(time.Minute),
			})
			if err != nil || reply.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN {
				t.Errorf("poll %d ends with %v, %v", i, reply.GetEmptyReason(), err)
			}
		})
	}
	awaitStats(t, n, "q", func(s *matchingpb.QueueStats) bool { return s.GetWaitingPolls() == polls })
	begun := time.Now()
	if err := n.Stop(bound + 5*time.Second); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	open.Wait()
	if took > bound {
		t.Errorf("the server ended after %v, the bound is %v", took, bound)
	}
	t.Logf("ended within %v", took)
}

// awaitStats waits until the figures of a queue are as wanted.
func awaitStats(t *testing.T, n *node, queue string, wanted func(*matchingpb.QueueStats) bool) {
	t.Helper()
	ctx := limit(t, 30*time.Second)
	c := n.client()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		reply, err := c.DescribeTaskQueue(ctx, &matchingpb.DescribeTaskQueueRequest{TaskQueue: wire.EncodeQueue(queueNamed(queue))})
		if err == nil && wanted(reply.GetStats()) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the queue does not come to look as wanted: %v, %v", reply.GetStats(), err)
		case <-ticker.C:
		}
	}
}

// TestWorkerFinishesWhatRuns: after SIGTERM the task that runs is completed and
// the next one is not begun.
func TestWorkerFinishesWhatRuns(t *testing.T) {
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t)
	n.addLines(ctx, []string{"first", "second"})
	gate := filepath.Join(t.TempDir(), "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := n.command(ctx, "work", "--queue", "files", "--", "sh", "-c", "echo began {}; read -r word <"+gate+"; echo $word {}")
	said := startSaying(t, cmd)
	expectLine(t, said, "began first")
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gate, []byte("ended\n"), 0o600); err != nil { // waits for the reader
		t.Fatal(err)
	}
	expectLine(t, said, "ended first")
	if err := cmd.Wait(); err != nil {
		t.Errorf("the worker ends with %v", err)
	}
	awaitStats(t, n, "files", func(s *matchingpb.QueueStats) bool { return s.GetReady() == 1 && s.GetLeased() == 0 })
}

// TestSecondSignalEndsAtOnce also kills what the worker runs.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t)
	n.addLines(ctx, []string{"first"})
	cmd := n.command(ctx, "work", "--queue", "files", "--", "sh", "-c", "echo $$; while :; do sleep 1000; done")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	said := startSaying(t, cmd)
	group := nextLine(t, said)
	// Two of a kind that come close together may arrive as one.
	for _, s := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		if err := cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	if code := exit.Code(cmd.ProcessState.ExitCode()); code != exit.Interrupted {
		t.Errorf("the worker ends with code %d, want %d", code, exit.Interrupted)
	}
	if !strings.Contains(stderr.String(), "killed 1 task: ") {
		t.Errorf("the worker does not say what it killed: %q", stderr.String())
	}
	awaitNoGroup(t, group)
}

// awaitNoGroup waits until no process of a group is left.
func awaitNoGroup(t *testing.T, group string) {
	t.Helper()
	ctx := limit(t, 10*time.Second)
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	leader, err := strconv.Atoi(group)
	if err != nil {
		t.Fatal(err)
	}
	for syscall.Kill(-leader, 0) == nil {
		select {
		case <-ctx.Done():
			t.Fatalf("process group %s lives on", group)
		case <-ticker.C:
		}
	}
}

// startSaying starts a process and returns what it says.
func startSaying(t *testing.T, cmd *exec.Cmd) *bufio.Reader {
	t.Helper()
	said, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(said)
}

func nextLine(t *testing.T, said *bufio.Reader) string {
	t.Helper()
	line, err := said.ReadString('\n')
	if err != nil {
		t.Fatalf("the process says no more: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

func expectLine(t *testing.T, said *bufio.Reader, want string) {
	t.Helper()
	if got := nextLine(t, said); got != want {
		t.Errorf("the process says %q, want %q", got, want)
	}
}
