package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/cmd/taskring/child"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// startFrontend starts a frontend of nodes. It is killed in the end.
func startFrontend(ctx context.Context, t *testing.T, nodes []*node, args ...string) *child.Server {
	t.Helper()
	addresses := make([]string, 0, len(nodes))
	for _, n := range nodes {
		addresses = append(addresses, n.GRPCAddr)
	}
	f, err := child.StartFrontend(ctx, self(), append(args, "--nodes", strings.Join(addresses, ","))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		f.Kill()
		if t.Failed() {
			t.Logf("the end of the frontend's log:\n%s", f.Log())
		}
	})
	return f
}

// dial returns a connection to a server, as a program in another language has it.
func dial(t *testing.T, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// page returns the status and the body of a page of the HTTP address.
func page(ctx context.Context, t *testing.T, address, path string) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(content)
}

// TestFrontendBeforeTwoNodes adds tasks of many queues through a frontend and works
// on them through it; both nodes get a part.
func TestFrontendBeforeTwoNodes(t *testing.T) {
	ctx := limit(t, time.Minute)
	nodes := []*node{startNode(ctx, t), startNode(ctx, t)}
	f := startFrontend(ctx, t, nodes)
	conn := dial(t, f.GRPCAddr)
	c := matchingpb.NewMatchingServiceClient(conn)

	const queues = 30 // by chance all on one node: once in 500 million runs
	added := map[string]bool{}
	for i := range queues {
		payload := fmt.Sprintf("task %d", i)
		added[payload] = true
		if _, err := c.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: numbered(i), Payload: []byte(payload)}); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range nodes {
		held, err := matchingpb.NewMatchingServiceClient(dial(t, n.GRPCAddr)).ListTaskQueues(ctx, &matchingpb.ListTaskQueuesRequest{})
		if err != nil || len(held.GetTaskQueues()) == 0 || len(held.GetTaskQueues()) == queues {
			t.Errorf("node %d holds %d of %d queues, %v: want a part", i, len(held.GetTaskQueues()), queues, err)
		}
	}
	for i := range queues {
		got, err := c.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: numbered(i), Wait: durationpb.New(10 * time.Second)})
		if err != nil || len(got.GetTasks()) != 1 {
			t.Fatalf("polling queue %d: %v, %v", i, got, err)
		}
		delete(added, string(got.GetTasks()[0].GetPayload()))
		if _, err := c.CompleteTask(ctx, &matchingpb.CompleteTaskRequest{Token: got.GetTasks()[0].GetToken()}); err != nil {
			t.Fatalf("completing the task of queue %d: %v", i, err)
		}
		left, err := c.DescribeTaskQueue(ctx, &matchingpb.DescribeTaskQueueRequest{TaskQueue: numbered(i)})
		if s := left.GetStats(); err != nil || s.GetReady()+s.GetLeased() != 0 {
			t.Errorf("queue %d is left with %v, %v", i, s, err)
		}
	}
	if len(added) != 0 {
		t.Errorf("never came: %v", added)
	}

	root := numbered(0)
	root.Partition = new(int32)
	_, err := c.AddTask(ctx, &matchingpb.AddTaskRequest{TaskQueue: root})
	if err = wire.FromStatus(err); task.ReasonOf(err) != task.Invalid || !strings.Contains(err.Error(), "this is a frontend") {
		t.Errorf("a set partition: %v", err)
	}
	checkProbes(ctx, t, f, conn)
}

// TestFrontendSpreadsAQueue: the partitions of one queue lie on both nodes, by the
// settings that frontend and nodes share, and its tasks come from all of them.
func TestFrontendSpreadsAQueue(t *testing.T) {
	ctx := limit(t, time.Minute)
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	content := "matching.numTaskqueueWritePartitions: 4\nmatching.numTaskqueueReadPartitions: 4\nmatching.spreadRoutingBatchSize: 2\n"
	if err := os.WriteFile(settings, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	nodes := []*node{startNode(ctx, t, "--dynamic-config", settings), startNode(ctx, t, "--dynamic-config", settings)}
	f := startFrontend(ctx, t, nodes, "--dynamic-config", settings)
	c := matchingpb.NewMatchingServiceClient(dial(t, f.GRPCAddr))
	q := wire.EncodeQueue(queueNamed("q"))
	const tasks = 100
	batch := &matchingpb.AddBatch{TaskQueue: q}
	for i := range tasks {
		batch.Payloads = append(batch.Payloads, strconv.AppendInt(nil, int64(i), 10))
	}
	added, err := c.AddTasks(ctx, &matchingpb.AddTasksRequest{Batches: []*matchingpb.AddBatch{batch}})
	if err != nil || len(added.GetResults()) != 1 || len(added.GetResults()[0].GetErrors()) != 0 {
		t.Fatalf("adding: %v, %v", added, err)
	}
	d, err := c.DescribeTaskQueue(ctx, &matchingpb.DescribeTaskQueueRequest{TaskQueue: q, IncludePartitions: true})
	if err != nil || d.GetStats().GetReady() != tasks || len(d.GetPartitions()) != 4 {
		t.Fatalf("the queue is described as %v, %v", d, err)
	}
	on := map[string]int{}
	for _, p := range d.GetPartitions() {
		on[p.GetHolder().GetAddress()]++
	}
	for _, n := range nodes {
		if on[n.GRPCAddr] != 2 {
			t.Errorf("the partitions lie on %v, want 2 on each node", on)
		}
	}
	got := map[string]bool{}
	for len(got) < tasks && ctx.Err() == nil {
		reply, err := c.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: q, MaxTasks: 10, Wait: durationpb.New(10 * time.Millisecond)})
		if err != nil {
			t.Fatal(err)
		}
		done := &matchingpb.CompleteTasksRequest{}
		for _, g := range reply.GetTasks() {
			got[string(g.GetPayload())] = true
			done.Tokens = append(done.Tokens, g.GetToken())
		}
		if out, err := c.CompleteTasks(ctx, done); err != nil || len(out.GetTokens().GetErrors()) != 0 {
			t.Fatalf("completing: %v, %v", out, err)
		}
	}
	if len(got) != tasks {
		t.Errorf("%d of %d tasks came", len(got), tasks)
	}
}

func numbered(i int) *matchingpb.TaskQueuePartition {
	return wire.EncodeQueue(queueNamed("q" + strconv.Itoa(i)))
}

func checkProbes(ctx context.Context, t *testing.T, f *child.Server, conn *grpc.ClientConn) {
	t.Helper()
	for path, want := range map[string]string{"/livez": "ok", "/readyz": "ok", "/metrics": `taskring_frontend_calls_total{code="OK",method="AddTask"} 30`} {
		if status, body := page(ctx, t, f.HTTPAddr, path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: status %d, lacks %q:\n%s", path, status, want, body)
		}
	}
	health, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: matchingpb.MatchingService_ServiceDesc.ServiceName})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", health, err)
	}
}

// TestFrontendStops: polls that wait are answered, and a task that is added at
// once after that waits for somebody else; none is lost on its way to the frontend.
func TestFrontendStops(t *testing.T) {
	ctx := limit(t, time.Minute)
	n := startNode(ctx, t)
	f := startFrontend(ctx, t, []*node{n})
	c := matchingpb.NewMatchingServiceClient(dial(t, f.GRPCAddr))
	const polls = 200
	ends := make([]matchingpb.EmptyReason, polls)
	var open sync.WaitGroup
	for i := range polls {
		open.Go(func() {
			reply, err := c.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(queueNamed("q")), Wait: durationpb.New(50 * time.Second)})
			if err != nil {
				t.Errorf("poll %d: %v", i, err)
			}
			ends[i] = reply.GetEmptyReason()
		})
	}
	awaitStats(t, n, "q", func(s *matchingpb.QueueStats) bool { return s.GetWaitingPolls() == polls })
	begun := time.Now()
	if err := f.Stop(20 * time.Second); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 10*time.Second {
		t.Errorf("the frontend ended after %v", took)
	}
	open.Wait()
	if slices.ContainsFunc(ends, func(r matchingpb.EmptyReason) bool { return r != matchingpb.EmptyReason_EMPTY_REASON_SHUTDOWN }) {
		t.Errorf("polls ended with %v, want SHUTDOWN", ends)
	}
	n.output(ctx, "task", "add", "--queue", "q", "--payload", "x")
	awaitStats(t, n, "q", func(s *matchingpb.QueueStats) bool { return s.GetReady() == 1 && s.GetWaitingPolls() == 0 })
}

func TestFrontendRefusals(t *testing.T) {
	for args, want := range map[string]string{
		"frontend":                                    "--nodes",
		"frontend --nodes nowhere":                    `--nodes "nowhere" is not HOST:PORT`,
		"frontend --nodes a:1 --log-level x":          "log-level",
		"frontend --nodes a:1 --shutdown-timeout -1s": "has to be positive",
		"frontend --nodes a:1 --log-format xml":       "xml",
	} {
		code, _, stderr := invoke(t, strings.Fields(args)...)
		if code != exit.Usage || !strings.Contains(stderr, want) {
			t.Errorf("taskring %s: code %d, %q, want %d and %q", args, code, stderr, exit.Usage, want)
		}
	}
	settings := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(settings, []byte("matching.spreadRoutingBatchSize: lots\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr := invoke(t, "frontend", "--nodes", "a:1", "--dynamic-config", settings, "--grpc-addr", "127.0.0.1:0")
	if code != exit.Failure || !strings.Contains(stderr, "lots") || !strings.Contains(stderr, "config validate") {
		t.Errorf("with wrong settings: code %d, %q", code, stderr)
	}
	n := startNode(limit(t, time.Minute), t)
	code, _, stderr = invoke(t, "frontend", "--nodes", n.GRPCAddr, "--grpc-addr", n.GRPCAddr, "--http-addr", "127.0.0.1:0")
	if code != exit.Failure || !strings.Contains(stderr, "--grpc-addr") {
		t.Errorf("on a taken port: code %d, %q", code, stderr)
	}
}
