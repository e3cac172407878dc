package client

import (
	"context"
	"errors"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// span is the span of one call of a caller's; the zero value is none.
type span struct{ of trace.Span }

// span begins one when there is a tracer; q is the zero value when the call is about
// several queues.
func (c *Client) span(ctx context.Context, method string, q partition.Queue) (context.Context, span) {
	if c.options.Tracer == nil {
		return ctx, span{}
	}
	ctx, s := c.options.Tracer.Start(ctx, "taskring."+method, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(queueAttributes(q)...)) //nolint:spancheck // the caller ends it
	return ctx, span{s}                                                                                                                              //nolint:spancheck // the caller ends it
}

func queueAttributes(q partition.Queue) []attribute.KeyValue {
	if q == (partition.Queue{}) {
		return []attribute.KeyValue{attribute.String("messaging.system", "taskring")}
	}
	return []attribute.KeyValue{
		attribute.String("messaging.system", "taskring"),
		attribute.String("messaging.destination.name", q.Name),
		attribute.String("taskring.namespace", q.Namespace),
		attribute.String("taskring.task_type", q.Type.String()),
	}
}

// end ends the span.
func (s span) end(err error) {
	if s.of == nil {
		return
	}
	if err != nil {
		s.of.SetStatus(codes.Error, err.Error())
		if e, ok := errors.AsType[*task.Error](err); ok {
			s.of.SetAttributes(attribute.String("taskring.reason", e.Reason.String()))
		}
	}
	s.of.End()
}

// traced puts the trace context of an add into the headers of its task, so that
// whoever works on it continues the trace. It does not travel in the metadata of
// the call: adds of different traces leave together. Headers that name a trace
// already stay as they are.
func (c *Client) traced(ctx context.Context, in *matchingpb.AddTaskRequest) *matchingpb.AddTaskRequest {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return in
	}
	options := in.GetOptions()
	if _, has := options.GetHeaders()[traceParent]; has {
		return in
	}
	headers := make(map[string]string, len(options.GetHeaders())+2)
	maps.Copy(headers, options.GetHeaders())
	propagation.TraceContext{}.Inject(ctx, propagation.MapCarrier(headers))
	return &matchingpb.AddTaskRequest{
		TaskQueue: in.GetTaskQueue(), Payload: in.GetPayload(), Options: withHeaders(options, headers), Forwarded: in.GetForwarded(),
	}
}

// traceParent is the W3C header that names a trace and its current span.
const traceParent = "traceparent"

// withHeaders returns a copy of options, which may be nil, with other headers.
func withHeaders(o *matchingpb.TaskOptions, headers map[string]string) *matchingpb.TaskOptions {
	out := &matchingpb.TaskOptions{}
	if o != nil {
		from, to := o.ProtoReflect(), out.ProtoReflect()
		from.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if !field.IsMap() {
				to.Set(field, v)
			}
			return true
		})
		to.SetUnknown(from.GetUnknown())
	}
	out.Headers = headers
	return out
}

// handled begins the span of a handler. It is linked to the span that added the
// task, and its parent too when nothing else is: a task is worked on for one add.
func (c *Client) handled(ctx context.Context, t *Task) (context.Context, span) {
	if len(t.Headers) > 0 && t.Headers[traceParent] != "" {
		ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(t.Headers))
	}
	if c.options.Tracer == nil {
		return ctx, span{}
	}
	added := trace.SpanContextFromContext(ctx)
	options := []trace.SpanStartOption{trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(queueAttributes(t.Partition.Queue)...)}
	if added.IsValid() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: added}))
	}
	ctx, s := c.options.Tracer.Start(ctx, "taskring.handle", options...) //nolint:spancheck // the caller ends it
	return ctx, span{s}                                                  //nolint:spancheck // the caller ends it
}
