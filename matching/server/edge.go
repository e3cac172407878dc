package server

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// edge is what stands between the connection and the handler: it refuses
// requests that are too large, turns errors into statuses, counts calls, and
// tells a handler when its reply could not be sent.
type edge struct {
	handler *Handler
	calls   metric.Int64Counter
	labels  sync.Map // outcome -> metric.MeasurementOption
}

func newEdge(cfg Config) (*edge, error) {
	meter := cfg.Meter
	if meter == nil {
		meter = noop.NewMeterProvider().Meter("")
	}
	calls, err := meter.Int64Counter("taskring.server.calls", metric.WithUnit("{call}"),
		metric.WithDescription("Calls answered, by method and gRPC code."))
	if err != nil {
		return nil, fmt.Errorf("taskring.server.calls: %w", err)
	}
	return &edge{handler: cfg.Handler, calls: calls}, nil
}

// call is what the edge remembers of one call. The stats handler makes it; the
// handler finds it in its context.
type call struct {
	received int // bytes of the request as it came, without compression
	// undelivered is called when the handler returned a reply that could not be
	// sent. Set by the handler, read after it returned.
	undelivered atomic.Pointer[func()]
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// onUndelivered has f called when the reply of the call cannot be sent. It does
// nothing for calls within the process, whose reply always arrives.
func onUndelivered(ctx context.Context, f func()) {
	if c := callOf(ctx); c != nil {
		c.undelivered.Store(&f)
	}
}

// TagRPC implements stats.Handler.
func (e *edge) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	return context.WithValue(ctx, callKey{}, &call{})
}

// HandleRPC implements stats.Handler.
func (e *edge) HandleRPC(ctx context.Context, s stats.RPCStats) {
	switch s := s.(type) {
	case *stats.InPayload:
		if c := callOf(ctx); c != nil {
			c.received = s.Length
		}
	case *stats.End:
		if s.Error == nil {
			return
		}
		if c := callOf(ctx); c != nil {
			if f := c.undelivered.Load(); f != nil {
				(*f)()
			}
		}
	}
}

// TagConn implements stats.Handler.
func (e *edge) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (e *edge) HandleConn(context.Context, stats.ConnStats) {}

// unary is the interceptor of single calls.
func (e *edge) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	var reply any
	err := e.checkSize(ctx)
	if err == nil {
		reply, err = next(ctx, req)
	}
	err = wire.ToStatus(ofStub(info.FullMethod, err))
	e.count(ctx, info.FullMethod, err)
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// stream is the interceptor of streams. Its context ends when the node stops:
// streams such as health watches would hold up a graceful stop otherwise.
func (e *edge) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	ctx, cancel := e.handler.untilPollsEnd(ss.Context())
	defer cancel()
	err := wire.ToStatus(ofStub(info.FullMethod, next(srv, &boundStream{ServerStream: ss, ctx: ctx})))
	e.count(ctx, info.FullMethod, err)
	return err
}

// ofStub puts what the generated stub says of a method that nobody wrote into our
// own words, with a reason. Other errors stay as they are.
func ofStub(method string, err error) error {
	st, ok := status.FromError(err)
	if !ok || st.Code() != codes.Unimplemented || len(st.Details()) > 0 {
		return err
	}
	return task.Errorf(task.Unimplemented, "%s is not built yet: this version of the node does not serve it", nameOf(method))
}

// nameOf returns the name of a method without that of its service.
func nameOf(method string) string { return method[strings.LastIndexByte(method, '/')+1:] }

// boundStream is a stream with a context of its own.
type boundStream struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream carries its context
}

// Context implements grpc.ServerStream.
func (s *boundStream) Context() context.Context { return s.ctx }

func (e *edge) checkSize(ctx context.Context) error {
	c := callOf(ctx)
	if c == nil {
		return nil
	}
	limit := e.handler.settings().RequestBytes
	if c.received <= limit {
		return nil
	}
	return task.Errorf(task.Invalid, "the request is %d bytes long, the limit is %d (%s): send less in one call",
		c.received, limit, settingRequestBytes)
}

// outcome is a pair of labels.
type outcome struct {
	method string
	code   codes.Code
}

// count counts a call. Label sets are made once: the methods are those that are
// registered, so there are few.
func (e *edge) count(ctx context.Context, method string, err error) {
	key := outcome{method, status.Code(err)}
	labels, ok := e.labels.Load(key)
	if !ok {
		labels, _ = e.labels.LoadOrStore(key, metric.WithAttributeSet(attribute.NewSet(
			attribute.String("method", nameOf(method)),
			attribute.String("code", key.code.String()),
		)))
	}
	e.calls.Add(ctx, 1, labels.(metric.MeasurementOption)) //nolint:forcetypeassert // only options are in it
}
