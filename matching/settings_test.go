package matching

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

func registry(t *testing.T) *dynamicconfig.Registry {
	t.Helper()
	r, err := dynamicconfig.NewRegistry(Declared()...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// publish puts a file's text in force.
func publish(t *testing.T, s *live.Settings, text string) {
	t.Helper()
	snapshot, err := registry(t).Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	s.Publish(snapshot)
}

// eventually waits until ok, which asks the node each time.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 s", what)
		}
	}
}

func part(queue string, number int32) *matchingpb.TaskQueuePartition {
	return wire.EncodePartition(partition.Queue{Namespace: "default", Name: queue, Type: partition.Activity}.Partition(number))
}

// TestSettingsChangeLive: what holds for a queue changes without a restart, and for
// no other queue.
func TestSettingsChangeLive(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Settings = live.New(nil)
	n := start(t, cfg)
	defer stop(t, n)
	h := n.Direct()
	add := func(queue string, number int32, payload string) error {
		_, err := h.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: part(queue, number), Payload: []byte(payload)})
		return err
	}
	if err := add("busy", 3, "x"); !errors.Is(err, task.StaleCounts) {
		t.Fatalf("adding to partition 3 of 1: %v", err)
	}
	publish(t, cfg.Settings, `
matching.numTaskqueueWritePartitions:
  - {value: 4, constraints: {namespace: default, taskQueueName: busy}}
matching.maxPayloadBytes: 10B
matching.maxLeases:
  - {value: 1, constraints: {taskQueueName: narrow}}
`)
	if err := add("busy", 3, "x"); err != nil {
		t.Errorf("adding to partition 3 of 4: %v", err)
	}
	if err := add("other", 3, "x"); !errors.Is(err, task.StaleCounts) {
		t.Errorf("adding to partition 3 of another queue: %v", err)
	}
	if err := add("busy", 0, strings.Repeat("x", 11)); !errors.Is(err, task.Invalid) || !strings.Contains(err.Error(), "the limit is 10 (matching.maxPayloadBytes)") {
		t.Errorf("a payload over the new limit: %v", err)
	}
	for queue, want := range map[string]int{"narrow": 1, "other": 2} {
		for range 2 {
			if err := add(queue, 0, "x"); err != nil {
				t.Fatal(err)
			}
		}
		out, err := h.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: part(queue, 0), MaxTasks: 2})
		if err != nil || len(out.GetTasks()) != want {
			t.Errorf("a poll of %s is given %d tasks, want %d: %v", queue, len(out.GetTasks()), want, err)
		}
	}
	publish(t, cfg.Settings, "")
	if err := add("busy", 0, strings.Repeat("x", 11)); err != nil {
		t.Errorf("after the limit was taken back: %v", err)
	}
}

// TestPollOrderChangesLive: of two waiting polls the newest is served, then, once
// the setting says so, the oldest.
func TestPollOrderChangesLive(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Settings = live.New(nil)
	n := start(t, cfg)
	defer stop(t, n)
	h := n.Direct()
	served := func() string {
		got := make(chan string, 2)
		for i, id := range []string{"old", "new"} {
			go func() {
				out, err := h.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: orders(), PollId: id, Wait: durationpb.New(time.Minute)})
				if err == nil && len(out.GetTasks()) > 0 {
					got <- id
				} else {
					got <- ""
				}
			}()
			eventually(t, "the poll waits", func() bool {
				d, err := h.DescribePartition(t.Context(), &matchingpb.DescribePartitionRequest{TaskQueue: orders()})
				return err == nil && d.GetPartition().GetStats().GetWaitingPolls() == int64(i+1)
			})
		}
		if _, err := h.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: orders()}); err != nil {
			t.Fatal(err)
		}
		first := <-got
		for _, id := range []string{"old", "new"} {
			if _, err := h.CancelPoll(t.Context(), &matchingpb.CancelPollRequest{TaskQueue: orders(), PollId: id}); err != nil {
				t.Fatal(err)
			}
		}
		return first + <-got
	}
	if got := served(); got != "new" {
		t.Errorf("by default %q was served first", got)
	}
	publish(t, cfg.Settings, "matching.pollOrder: [{value: oldestFirst, constraints: {namespace: default}}]")
	if got := served(); got != "old" {
		t.Errorf("with oldestFirst %q was served first", got)
	}
}

// loadFailed returns the metric of that name.
func loadFailed(t *testing.T, n *Node) float64 {
	t.Helper()
	const name = "dynamic_config_load_failed"
	_, body := get(t, n.HTTPAddr(), "/metrics")
	for line := range strings.Lines(body) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			v, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	t.Fatalf("no metric %s:\n%s", name, body)
	return 0
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestWrongFileUnderLoad: a file with a mistake changes nothing for those who add
// and work meanwhile; metric, /readyz and description say so until it is fixed.
func TestWrongFileUnderLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	write(t, path, "matching.maxPayloadBytes: 100B\n")
	cfg := config(t.TempDir())
	cfg.DynamicConfig.Path = path
	n := start(t, cfg)
	defer stop(t, n)
	h := n.Direct()

	var over atomic.Bool
	var load sync.WaitGroup
	var small, large atomic.Int64 // adds that went as they should have
	for i := range 4 {
		load.Go(func() {
			for !over.Load() {
				_, err := h.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: part("load", 0), Payload: make([]byte, 50)})
				if err != nil {
					t.Errorf("worker %d: a payload of 50 bytes: %v", i, err)
					return
				}
				small.Add(1)
				_, err = h.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: part("load", 0), Payload: make([]byte, 150)})
				if !errors.Is(err, task.Invalid) {
					t.Errorf("worker %d: a payload of 150 bytes, the limit is 100: %v", i, err)
					return
				}
				large.Add(1)
			}
		})
	}
	defer load.Wait()
	defer over.Store(true)
	hash := n.settingsStatus().Hash
	code, text := get(t, n.HTTPAddr(), "/readyz")
	if code != http.StatusOK || !strings.HasPrefix(text, "ok\n") || !strings.Contains(text, "hash "+hash) {
		t.Errorf("/readyz = %d %q", code, text)
	}

	write(t, path, "matching.maxPayloadBytes: 1000B\nmatching.maxLease: 5\n")
	eventually(t, "the mistake is told", func() bool { return loadFailed(t, n) == 1 })
	before := small.Load()
	eventually(t, "the load goes on", func() bool { return small.Load() > before+20 && large.Load() > 0 })
	code, text = get(t, n.HTTPAddr(), "/readyz")
	for _, want := range []string{"ok\n", path + " is refused since", hash, "line 2", "matching.maxLeases"} {
		if code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/readyz with a wrong file = %d, without %q:\n%s", code, want, text)
		}
	}
	d, err := h.DescribeNode(t.Context(), &matchingpb.DescribeNodeRequest{})
	if s := d.GetSettings(); err != nil || s.GetHash() != hash || !strings.Contains(s.GetFailing(), "maxLease") || s.GetFailingSince() == nil || s.GetPath() != path {
		t.Errorf("DescribeNode = %v, %v", d, err)
	}
	if got := loadFailed(t, n); got != 1 {
		t.Errorf("dynamic_config_load_failed fell to %v by itself", got)
	}

	over.Store(true)
	load.Wait()
	write(t, path, "matching.maxPayloadBytes: 1000B\n")
	eventually(t, "the fix is taken", func() bool { return loadFailed(t, n) == 0 })
	if _, err := h.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: part("load", 0), Payload: make([]byte, 150)}); err != nil {
		t.Errorf("a payload of 150 bytes under the new limit: %v", err)
	}
	if _, text := get(t, n.HTTPAddr(), "/readyz"); strings.Contains(text, "refused") || strings.Contains(text, hash) {
		t.Errorf("/readyz after the fix:\n%s", text)
	}
}

// TestStartWithWrongFile: a node does not start on a file with a mistake, or a
// missing one, unless it is told to start on the defaults.
func TestStartWithWrongFile(t *testing.T) {
	wrong := filepath.Join(t.TempDir(), "wrong.yaml")
	write(t, wrong, "matching.maxPayloadBytes: lots\nmatching.pollOrder: random\n")
	for _, path := range []string{wrong, filepath.Join(t.TempDir(), "missing.yaml")} {
		cfg := config(t.TempDir())
		cfg.DynamicConfig.Path = path
		if n, err := New(cfg); err == nil {
			t.Errorf("%s: a node was made", path)
			stop(t, n)
		} else if path == wrong && (!strings.Contains(err.Error(), "line 1") || !strings.Contains(err.Error(), "line 2")) {
			t.Errorf("not all mistakes are told: %v", err)
		}
		cfg.DynamicConfig.StartOnDefaults = true
		n := start(t, cfg)
		if got := loadFailed(t, n); got != 1 {
			t.Errorf("%s: on defaults, dynamic_config_load_failed is %v", path, got)
		}
		if err := n.ready(); err != nil {
			t.Errorf("%s: a node on defaults is not ready: %v", path, err)
		}
		stop(t, n)
	}
}

// TestPrecedence: the entry that wins is the one that the server goes by, for
// every combination of constraints.
func TestPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	write(t, path, `
matching.numTaskqueueReadPartitions:
  - {value: 2}
  - {value: 3, constraints: {taskType: workflow}}
  - {value: 4, constraints: {namespace: shop}}
  - {value: 5, constraints: {taskQueueName: orders}}
  - {value: 6, constraints: {namespace: shop, taskType: workflow}}
  - {value: 7, constraints: {taskQueueName: orders, taskType: workflow}}
  - {value: 8, constraints: {namespace: shop, taskQueueName: orders}}
  - {value: 9, constraints: {namespace: shop, taskQueueName: orders, taskType: workflow}}
`)
	cfg := config(t.TempDir())
	cfg.DynamicConfig.Path = path
	n := start(t, cfg)
	defer stop(t, n)
	conn := dial(t, n)
	defer func() { _ = conn.Close() }()
	c := matchingpb.NewMatchingServiceClient(conn)
	want := map[partition.Queue]int32{
		{Namespace: "a", Name: "b", Type: partition.Activity}: 2, {Namespace: "a", Name: "b", Type: partition.Workflow}: 3,
		{Namespace: "shop", Name: "b", Type: partition.Activity}: 4, {Namespace: "a", Name: "orders", Type: partition.Activity}: 5,
		{Namespace: "shop", Name: "b", Type: partition.Workflow}: 6, {Namespace: "a", Name: "orders", Type: partition.Workflow}: 7,
		{Namespace: "shop", Name: "orders", Type: partition.Activity}: 8, {Namespace: "shop", Name: "orders", Type: partition.Workflow}: 9,
	}
	for q, read := range want {
		if _, err := c.AddTask(t.Context(), &matchingpb.AddTaskRequest{TaskQueue: wire.EncodePartition(q.Partition(0))}); err != nil {
			t.Fatal(err)
		}
		polled, err := c.PollTask(t.Context(), &matchingpb.PollTaskRequest{TaskQueue: wire.EncodePartition(q.Partition(0)), Wait: durationpb.New(0)})
		if got := polled.GetCounts(); err != nil || got.GetRead() != read || got.GetWrite() != 1 {
			t.Errorf("%v is read from %d partitions, want %d: %v", q, got.GetRead(), read, err)
		}
		x, err := c.ExplainSetting(t.Context(), &matchingpb.ExplainSettingRequest{
			Key: "MATCHING.numtaskqueueREADpartitions", Namespace: q.Namespace, TaskQueueName: q.Name, TaskType: matchingpb.TaskType(q.Type),
		})
		if err != nil || x.GetValue() != strconv.Itoa(int(read)) || x.GetIsDefault() || len(x.GetCandidates()) != 8 ||
			!x.GetCandidates()[0].GetWins() || x.GetCandidates()[0].GetEntry().GetLine() != read+1 {
			t.Errorf("%v: explained as %v, %v", q, x, err)
		}
	}
}

// TestNodeTellsItsSettings pages through all settings of a node.
func TestNodeTellsItsSettings(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Settings, cfg.Version = live.New(nil), "v1.2.3"
	n := start(t, cfg)
	defer stop(t, n)
	publish(t, cfg.Settings, "matching.maxLeases: [{value: 7}, {value: 8, constraints: {namespace: shop}}]\nmatching.readAheadBytes: 1GiB")
	h := n.Direct()
	request := &matchingpb.GetSettingsRequest{IncludeDefaults: true, PageSize: 10}
	seen := map[string]int{}
	var pages int
	for more := true; more; more = request.GetPageToken() != "" {
		out, err := h.GetSettings(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		pages++
		for _, e := range out.GetEntries() {
			seen[e.GetKey()]++
			if e.GetIsDefault() != (e.GetKey() != "matching.maxLeases" && e.GetKey() != "matching.readAheadBytes") {
				t.Errorf("is it a default? %v", e)
			}
		}
		request.PageToken = out.GetNextPageToken()
		if out.GetStatus().GetHash() == "" || out.GetNode().GetNode() != "node-1" {
			t.Errorf("GetSettings of %v with %v", out.GetNode(), out.GetStatus())
		}
	}
	all := registry(t).Settings()
	if len(seen) != len(all) || seen["matching.maxLeases"] != 2 || pages != len(all)/10+1 {
		t.Errorf("%d of %d settings on %d pages", len(seen), len(all), pages)
	}
	first, err := h.GetSettings(t.Context(), &matchingpb.GetSettingsRequest{KeyPrefix: "Matching.maxL", PageSize: 1})
	if err != nil || len(first.GetEntries()) != 1 || first.GetNextPageToken() == "" {
		t.Fatalf("one entry a page: %v, %v", first, err)
	}
	publish(t, cfg.Settings, "")
	_, err = h.GetSettings(t.Context(), &matchingpb.GetSettingsRequest{KeyPrefix: "Matching.maxL", PageSize: 1, PageToken: first.GetNextPageToken()})
	if !errors.Is(err, task.Invalid) || !strings.Contains(err.Error(), "begin again") {
		t.Errorf("a token of settings that changed: %v", err)
	}
	if _, err := h.ExplainSetting(t.Context(), &matchingpb.ExplainSettingRequest{Key: "matching.maxLease"}); !errors.Is(err, task.Invalid) || !strings.Contains(err.Error(), "did you mean") {
		t.Errorf("explaining an unknown key: %v", err)
	}
}

// TestNodeDescribesItself pages through the partitions that a node has loaded.
func TestNodeDescribesItself(t *testing.T) {
	cfg := config(t.TempDir())
	cfg.Settings, cfg.Version = live.New(nil), "v1.2.3"
	n := start(t, cfg)
	defer stop(t, n)
	h := n.Direct()
	for i := range 5 {
		if _, err := h.LoadPartition(t.Context(), &matchingpb.LoadPartitionRequest{TaskQueue: part(fmt.Sprint("q", i), 0)}); err != nil {
			t.Fatal(err)
		}
	}
	request := &matchingpb.DescribeNodeRequest{IncludePartitions: true, PageSize: 2}
	var names []string
	for more := true; more; more = request.GetPageToken() != "" {
		d, err := h.DescribeNode(t.Context(), request)
		if err != nil || d.GetLoadedPartitions() != 5 || d.GetVersion() != "v1.2.3" || d.GetHttpAddress() != n.HTTPAddr() ||
			d.GetNode().GetAddress() != n.GRPCAddr() || d.GetNode().GetRunId() == "" || len(d.GetStoreId()) == 0 || d.GetStartedAt() == nil {
			t.Fatalf("DescribeNode = %v, %v", d, err)
		}
		for _, p := range d.GetPartitions() {
			names = append(names, p.GetName())
		}
		request.PageToken = d.GetNextPageToken()
	}
	if got := strings.Join(names, " "); got != "q0 q1 q2 q3 q4" {
		t.Errorf("loaded are %s", got)
	}
	if _, err := h.DescribeNode(t.Context(), &matchingpb.DescribeNodeRequest{IncludePartitions: true, PageToken: "?"}); !errors.Is(err, task.Invalid) {
		t.Errorf("a bad page token: %v", err)
	}
}
