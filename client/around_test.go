package client

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// TestRetryBudget: a node that fails everything is called little more often than
// it would be without retries.
func TestRetryBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Settings: settings(Settings{NoBatching: true})})
		w.nodes["n0"].before = once("AddTask", 1<<30, task.Errorf(task.StoreUnavailable, "no disk"))
		const calls = 1000
		for range calls {
			if _, err := w.client.AddTask(t.Context(), addRequest("x")); status.Code(err) != codes.Unavailable {
				t.Fatalf("an add to a node without a store: %v", err)
			}
		}
		made := w.nodes["n0"].count("AddTask")
		if most := calls + 100 + calls/5 + 1; made > most || made < calls+100 {
			t.Errorf("%d adds made %d calls, want %d to %d", calls, made, calls+100, most)
		}
		if s := w.client.Stats(); s.OverBudget == 0 || s.Retries != int64(made-calls) {
			t.Errorf("stats %+v, want %d retries and some over the budget", s, made-calls)
		}
	})
}

// TestPushBack: a server says when to come again, or not to.
func TestPushBack(t *testing.T) {
	for pushback, want := range map[string]struct {
		calls int
		took  time.Duration
	}{"3000": {2, 3 * time.Second}, "-1": {1, 0}, "soon": {1, 0}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, Options{})
			fail := once("AddTask", 1, task.Errorf(task.StoreUnavailable, "no disk"))
			w.nodes["n0"].before = func(ctx context.Context, m string, id partition.ID) error {
				err := fail(ctx, m, id)
				if err != nil {
					_ = grpc.SetTrailer(ctx, metadata.Pairs("grpc-retry-pushback-ms", pushback))
				}
				return err
			}
			began := time.Now()
			_, err := w.client.AddTask(t.Context(), addRequest("x"))
			if took := time.Since(began); took < want.took || took > want.took*13/10 {
				t.Errorf("push-back %s: took %v, want %v and up to a fifth more", pushback, took, want.took)
			}
			if n := w.nodes["n0"].count("AddTask"); n != want.calls || (err == nil) != (n == 2) {
				t.Errorf("push-back %s: %d calls (%v), want %d", pushback, n, err, want.calls)
			}
		})
	}
}

// TestLatePollEndsEmpty: a poll that cannot be tried again before its deadline is
// no error.
func TestLatePollEndsEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{})
		w.nodes["n0"].before = once("PollTask", 1<<30, task.Errorf(task.NotReady, "loading"))
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		began := time.Now()
		out, err := w.client.PollTask(ctx, &matchingpb.PollTaskRequest{TaskQueue: wire.EncodeQueue(testQueue)})
		if err != nil || out.GetEmptyReason() != matchingpb.EmptyReason_EMPTY_REASON_TIMEOUT {
			t.Errorf("a poll of a partition that loads for ever: %v, %v, want TIMEOUT", out, err)
		}
		if took := time.Since(began); took < 9*time.Second {
			t.Errorf("it ended after %v, want little less than 10 s", took)
		}
	})
}

// dropping is a proxy that drops trailers that are not gRPC's own, and the details
// of errors with them when all is set.
func dropping(all bool) grpc.UnaryClientInterceptor {
	return func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		err := invoke(ctx, method, req, reply, cc, opts...)
		for _, o := range opts {
			if t, ok := o.(grpc.TrailerCallOption); ok {
				delete(*t.TrailerAddr, wire.CountsHeader)
			}
		}
		if all && err != nil {
			return status.Error(status.Code(err), status.Convert(err).Message())
		}
		return err
	}
}

// TestProxyThatDropsTrailers: the settings decide then, and what a message or an
// error says is still heard.
func TestProxyThatDropsTrailers(t *testing.T) {
	stale := task.Errorf(task.StaleCounts, "too few")
	stale.Stale = &task.Stale{Why: task.DrainingPartition, Counts: partition.Counts{Read: 4, Write: 2}}
	for _, all := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, Options{
				Queues: numbered(2), DialOptions: []grpc.DialOption{grpc.WithUnaryInterceptor(dropping(all))},
			})
			node := w.nodes["n0"]
			node.counts = counts(4, 4)
			mustAdd(t, w.client, "x")
			if got := w.client.countsOf(testQueue); got.Write != 2 {
				t.Errorf("counts %+v, want those of the settings", got)
			}
			pollTokens(t, w.client, 1)
			if got := w.client.countsOf(testQueue); got.Write != 4 {
				t.Errorf("counts %+v, want those in the answer of the poll", got)
			}
			mustAdd(t, w.client, "x")
			if got := w.client.countsOf(testQueue); got.Write != 4 {
				t.Errorf("counts %+v after an answer without any, want those known before", got)
			}
			node.before = once("AddTask", 1, stale)
			mustAdd(t, w.client, "y")
			want := int32(2) // told by the error, or by the settings when its details are gone too
			if got := w.client.countsOf(testQueue); got.Write != want {
				t.Errorf("all %v: counts %+v after STALE_PARTITION_COUNTS, want %d", all, got, want)
			}
		})
	}
}

// TestPollCarriesEverything guards the copy of a request that PollTask makes.
func TestPollCarriesEverything(t *testing.T) {
	rate := 3.5
	in := &matchingpb.PollTaskRequest{
		TaskQueue: wire.EncodeQueue(testQueue), MaxTasks: 1, PollId: "p", Identity: "i", WorkerInstanceKey: "w",
		Wait: durationpb.New(1), Format: matchingpb.GrantFormat_GRANT_FORMAT_COLUMNS, LeaseDuration: durationpb.New(2),
		MinPriority: 3, MaxQueueRate: &rate, MaxBytes: 4, Forwarded: &matchingpb.Forwarded{},
	}
	c, err := NewClient(Options{Addresses: []string{"a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	p := c.newPolling(wire.Target{Queue: testQueue}, in)
	defer p.token.Release()
	fields := in.ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if !in.ProtoReflect().Has(f) {
			t.Errorf("the test sets no %s: set it here, and copy it in name", f.Name())
		}
		if f.Name() != "task_queue" && !p.req.ProtoReflect().Get(f).Equal(in.ProtoReflect().Get(f)) {
			t.Errorf("%s is not carried", f.Name())
		}
	}
}

func TestMetricClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := sdkmetric.NewManualReader()
		meter := sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)).Meter("test")
		w := newWorld(t, 1, Options{Meter: meter})
		c, err := NewMetricClient(w.client, MetricOptions{Meter: meter, Queues: true})
		if err != nil {
			t.Fatal(err)
		}
		w.nodes["n0"].before = once("AddTask", 1, task.Errorf(task.Paused, "later"))
		for range 3 {
			_, _ = c.AddTask(t.Context(), addRequest("x"))
		}
		var got metricdata.ResourceMetrics
		if err := reader.Collect(t.Context(), &got); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, m := range got.ScopeMetrics[0].Metrics {
			text.WriteString(m.Name + "\n")
			if h, ok := m.Data.(metricdata.Histogram[float64]); ok {
				for _, p := range h.DataPoints {
					text.WriteString(pairs(p.Attributes) + " " + strings.Repeat("x", int(p.Count)) + "\n")
				}
			}
		}
		for _, want := range []string{
			"taskring.client.duration\n", "taskring.client.polls.outstanding\n", "taskring.client.counts.cached\n", "taskring.client.picks\n",
			"code=OK method=AddTask namespace=ns queue=orders xx\n",
			"code=FailedPrecondition method=AddTask namespace=ns queue=orders reason=PAUSED x\n",
		} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("no %q in\n%s", want, text.String())
			}
		}
	})
	if _, err := NewMetricClient(nil, MetricOptions{}); err == nil {
		t.Error("a metric client without a meter is made")
	}
}

func pairs(set attribute.Set) string {
	all := make([]string, 0, set.Len())
	for _, kv := range set.ToSlice() {
		all = append(all, string(kv.Key)+"="+kv.Value.String())
	}
	return strings.Join(all, " ")
}

func TestRetryableClient(t *testing.T) {
	for _, tc := range []struct {
		name  string
		in    *matchingpb.AddTaskRequest
		err   error
		calls int
		ok    bool
	}{
		{"the store is away", addRequest("x"), task.Errorf(task.StoreUnavailable, "no disk"), 2, true},
		{"invalid", addRequest("x"), task.Errorf(task.Invalid, "bad"), 1, false},
		{"unknown", addRequest("x"), task.Errorf(task.OutcomeUnknown, "?"), 1, false},
		{"unknown, with a request id", &matchingpb.AddTaskRequest{Options: &matchingpb.TaskOptions{RequestId: "r"}}, task.Errorf(task.OutcomeUnknown, "?"), 2, true},
		{"another node has it", addRequest("x"), task.Errorf(task.NotOwner, "go away"), 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1, Options{})
			w.nodes["n0"].before = once("AddTask", 1, tc.err)
			tc.in.TaskQueue = wire.EncodePartition(testQueue.Partition(0))
			c := NewRetryableClient(matchingpb.NewMatchingServiceClient(w.client.pool.Get("n0")))
			_, err := c.AddTask(t.Context(), tc.in)
			if n := w.nodes["n0"].count("AddTask"); n != tc.calls || (err == nil) != tc.ok {
				t.Errorf("%s: %d calls, %v, want %d", tc.name, n, err, tc.calls)
			}
		})
	}
}

// TestDynamicSettings: a client goes by live settings as soon as they change.
func TestDynamicSettings(t *testing.T) {
	registry, err := dynamicconfig.NewRegistry(Declared()...)
	if err != nil {
		t.Fatal(err)
	}
	settings := live.New(nil)
	c, err := NewClient(Options{Addresses: []string{"a:1"}, Dynamic: settings})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	publish := func(text string) {
		t.Helper()
		in, err := registry.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		settings.Publish(in)
	}
	if got := c.settings(); *got != (Settings{}).withDefaults() {
		t.Errorf("without a file: %+v, want the defaults", got)
	}
	publish("client.timeout: 3s\nclient.retryBudget: 0\nmatching.maxPayloadBytes: 10\nmatching.numTaskqueueWritePartitions: 6\nmatching.spreadRoutingBatchSize: 4\n")
	if got := c.settings(); got.Timeout != 3*time.Second || got.MaxPayloadBytes != 10 || got.RetryBudget > 0 {
		t.Errorf("settings %+v", got)
	}
	if got := c.countsOf(testQueue); got.Write != 6 || got.Read != 6 {
		t.Errorf("counts %+v, want 6/6", got)
	}
	if got := c.sources.batchSize(testQueue.Partition(1)); got != 4 {
		t.Errorf("batch size %d, want 4", got)
	}
}
