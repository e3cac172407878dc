package matching

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/fx"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/store/memory"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is a node on free ports, with its data in dir.
func config(dir string) Config {
	return Config{Name: "node-1", DataDir: dir, GRPCAddr: "127.0.0.1:0", HTTPAddr: "127.0.0.1:0"}
}

func start(t *testing.T, cfg Config) *Node {
	t.Helper()
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return n
}

func stop(t *testing.T, n *Node) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), DefaultStopTimeout)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Errorf("Stop: %v", err)
	}
}

func dial(t *testing.T, n *Node) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(n.GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// get returns the status and the body of a page of the HTTP endpoint.
func get(t *testing.T, addr, path string) (int, string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func orders() *matchingpb.TaskQueuePartition {
	return &matchingpb.TaskQueuePartition{Namespace: "default", Name: "orders", Partition: new(int32)}
}

// TestRestart: what was added and leased before a planned restart is there after
// it, the lease included.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	n := start(t, config(dir))
	conn := dial(t, n)
	c := matchingpb.NewMatchingServiceClient(conn)
	for i := range 5 {
		if _, err := c.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: orders(), Payload: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	before, err := c.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: orders(), MaxTasks: 2})
	if err != nil || len(before.GetTasks()) != 2 {
		t.Fatalf("PollTask = %v, %v, want 2 tasks", before, err)
	}
	_ = conn.Close()
	stop(t, n)

	n = start(t, config(dir))
	defer stop(t, n)
	conn = dial(t, n)
	defer func() { _ = conn.Close() }()
	c = matchingpb.NewMatchingServiceClient(conn)
	seen := map[string]bool{}
	for len(seen) < 3 {
		after, err := c.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: orders(), MaxTasks: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range after.GetTasks() {
			seen[string(g.GetPayload())] = true
		}
	}
	for _, g := range before.GetTasks() {
		if seen[string(g.GetPayload())] {
			t.Errorf("%s was handed out again while its lease lived", g.GetPayload())
		}
		if _, err := c.CompleteTask(t.Context(), &matchingpb.CompleteTaskRequest{Token: g.GetToken()}); err != nil {
			t.Errorf("a grant from before the restart cannot be completed: %v", err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Version = "1.2.3"
	n, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := n.ready(); err == nil {
		t.Error("a node is ready before it was started")
	}
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(t.Context()); err == nil {
		t.Error("a node starts twice")
	}
	for _, path := range []string{"/livez", "/readyz"} {
		if code, body := get(t, n.HTTPAddr(), path); code != http.StatusOK || strings.TrimSpace(body) != "ok" {
			t.Errorf("%s = %d %q", path, code, body)
		}
	}
	conn := dial(t, n)
	defer func() { _ = conn.Close() }()
	health, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{Service: "taskring.matching.v1.MatchingService"})
	if err != nil || health.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("health = %v, %v", health, err)
	}
	c := matchingpb.NewMatchingServiceClient(conn)
	if _, err := c.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: orders()}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: orders()}); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, n.HTTPAddr(), "/metrics")
	for _, want := range []string{
		`taskring_adds_total{namespace="default",queue="orders",result="ok",type="activity"} 1`,
		`taskring_polls_total{namespace="default",queue="orders",result="tasks",type="activity"} 1`,
		`taskring_server_calls_total{code="OK",method="AddTask"} 1`,
		`taskring_commit_duration_seconds_count`,
		`taskring_commit_records_sum`,
		`taskring_dispatch_latency_seconds_count`,
		`taskring_partitions_loaded 1`,
		`taskring_backlog_tasks{namespace="default",queue="orders",state="leased",type="activity"} 1`,
		`taskring_backlog_tasks{namespace="default",queue="orders",state="dead",type="activity"} 0`,
		`target_info{service_instance_id="node-1",service_name="taskring",service_version="1.2.3"} 1`,
		`go_build_info{`,
		`taskring_backlog_age_seconds{namespace="default",queue="orders",type="activity"} 0`,
		`taskring_tasks_granted_total 1`,
		`taskring_tasks_leases_expired_total 0`,
		`process_cpu_seconds_total`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
	stop(t, n)
	stop(t, n)
	if err := n.ready(); err == nil {
		t.Error("a node is ready after it was stopped")
	}
}

// TestConflicts: New takes nothing when it cannot have everything.
func TestConflicts(t *testing.T) {
	dir := t.TempDir()
	n, err := New(config(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer stop(t, n) // never started
	for name, change := range map[string]func(*Config){
		"data directory": func(c *Config) { c.DataDir = dir },
		"gRPC address":   func(c *Config) { c.GRPCAddr = n.GRPCAddr() },
		"HTTP address":   func(c *Config) { c.HTTPAddr = n.HTTPAddr() },
		"negative":       func(c *Config) { c.CommitLanes = -1 },
	} {
		cfg := config(t.TempDir())
		change(&cfg)
		if other, err := New(cfg); err == nil {
			t.Errorf("%s: a second node was made", name)
			stop(t, other)
		}
	}
}

// TestStopWithHungStore: a load that hangs in the store holds a stop for no
// longer than its context lasts.
func TestStopWithHungStore(t *testing.T) {
	entered, hung := make(chan struct{}), make(chan struct{})
	cfg := config("")
	cfg.Store = memory.New(memory.Options{Acquire: func(task.Holder, []partition.ID) memory.AcquireFault {
		close(entered)
		<-hung
		return memory.AcquireFault{}
	}})
	n := start(t, cfg)
	var caller sync.WaitGroup
	caller.Go(func() {
		_, _ = n.Direct().LoadPartition(t.Context(), &matchingpb.LoadPartitionRequest{TaskQueue: orders()})
	})
	<-entered
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := n.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Stop = %v, want one that tells of its deadline", err)
	}
	close(hung)
	<-n.stopDone
	caller.Wait()
}

func TestModule(t *testing.T) {
	var n *Node
	app := fx.New(fx.Supply(config(t.TempDir())), Module(), fx.Populate(&n), fx.NopLogger)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := app.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.ready(); err != nil {
		t.Errorf("the node is not ready: %v", err)
	}
	if err := app.Stop(ctx); err != nil {
		t.Error(err)
	}
}
