package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	otelcodes "go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/proto"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// TestTraceLinksUp: the span of a handler continues the trace in which the task was
// added.
func TestTraceLinksUp(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder)).Tracer("test")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1, Options{Tracer: tracer})
		ctx, root := tracer.Start(t.Context(), "caller")
		in := addRequest("x")
		in.Options = &matchingpb.TaskOptions{Priority: 4, Headers: map[string]string{"kept": "yes"}}
		before := proto.CloneOf(in)
		if _, err := w.client.AddTask(ctx, in); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(in, before) {
			t.Error("the caller's request was changed")
		}
		w.nodes["n0"].before = once("AddTask", 1, task.Errorf(task.Paused, "later"))
		if _, err := w.client.AddTask(ctx, addRequest("y")); err == nil {
			t.Error("no error")
		}
		root.End()
		sent := w.client.traced(ctx, in)
		if h := sent.GetOptions().GetHeaders(); h["kept"] != "yes" || h[traceParent] == "" || sent.GetOptions().GetPriority() != 4 {
			t.Errorf("options %v lack what the caller gave, or the trace", sent.GetOptions())
		}
		if again := w.client.traced(ctx, sent); again != sent {
			t.Error("a task that names a trace is changed")
		}
		handled, span := w.client.handled(context.Background(), &Task{Headers: sent.GetOptions().GetHeaders()})
		if got := trace.SpanContextFromContext(handled).TraceID(); got != root.SpanContext().TraceID() {
			t.Errorf("the handler runs in trace %v, want %v", got, root.SpanContext().TraceID())
		}
		span.end(errors.New("a bug"))
	})
	names := map[string]int{}
	for _, s := range recorder.Ended() {
		names[s.Name()]++
		if s.Name() == "taskring.handle" && (len(s.Links()) != 1 || s.Status().Code != otelcodes.Error) {
			t.Errorf("the handler's span has links %v and status %v", s.Links(), s.Status())
		}
	}
	if names["taskring.AddTask"] != 2 || names["taskring.handle"] != 1 {
		t.Errorf("spans %v, want two adds and a handler", names)
	}
}

// TestTraceWithoutTracer: the caller's trace travels all the same.
func TestTraceWithoutTracer(t *testing.T) {
	c, err := NewClient(Options{Addresses: []string{"a:1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop()
	if in := addRequest("x"); c.traced(t.Context(), in) != in {
		t.Error("a request without a trace is copied")
	}
	ctx, root := sdktrace.NewTracerProvider().Tracer("test").Start(t.Context(), "caller")
	defer root.End()
	if c.traced(ctx, addRequest("x")).GetOptions().GetHeaders()[traceParent] == "" {
		t.Error("the trace does not travel")
	}
}
