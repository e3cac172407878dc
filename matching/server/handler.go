package server

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/taskring/taskring/matching/engine"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/queue"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// HandlerConfig is what a handler is made of. Engine is required.
type HandlerConfig struct {
	Engine   *engine.Engine  // the node's partitions; started and stopped by its owner
	Settings func() Settings // in force; default all defaults
	// PerQueue returns what is in force for a queue; default all defaults.
	PerQueue func(q partition.Queue) PerQueue
	// Unrouted serves requests that name no partition. Without it they are
	// refused.
	Unrouted matchingpb.MatchingServiceServer
	// Healthy returns why the store takes no writes now, or nil. Adds are refused
	// while it does.
	Healthy func() error
	About   About        // what is told of the node
	Meter   metric.Meter // of adds, polls and dispatch latency; default none
}

// Handler serves the methods of the matching service, over gRPC through a Server
// or called directly. Its errors are those of the domain. Methods of later
// versions answer UNIMPLEMENTED.
type Handler struct {
	matchingpb.UnimplementedMatchingServiceServer

	cfg     HandlerConfig
	metrics *instruments

	polling  context.Context //nolint:containedctx // ended when polls are to end
	endPolls context.CancelFunc
}

// NewHandler makes a handler over an engine.
func NewHandler(cfg HandlerConfig) (*Handler, error) {
	if cfg.Engine == nil {
		return nil, errors.New("server: HandlerConfig.Engine is missing")
	}
	if cfg.Settings == nil {
		cfg.Settings = func() Settings { return Settings{} }
	}
	if cfg.PerQueue == nil {
		cfg.PerQueue = func(partition.Queue) PerQueue { return PerQueue{} }
	}
	if cfg.Healthy == nil {
		cfg.Healthy = func() error { return nil }
	}
	if err := cfg.About.complete(); err != nil {
		return nil, err
	}
	metrics, err := newInstruments(cfg.Meter)
	if err != nil {
		return nil, err
	}
	h := &Handler{cfg: cfg, metrics: metrics}
	h.polling, h.endPolls = context.WithCancel(context.Background())
	return h, nil
}

// SetUnrouted sets the handler of requests that name no partition, before the
// first call is served: the routing client needs the handler, and the handler
// the client.
func (h *Handler) SetUnrouted(u matchingpb.MatchingServiceServer) { h.cfg.Unrouted = u }

// EndPolls ends the polls that wait, with SHUTDOWN, and those that come later.
// Other calls go on.
func (h *Handler) EndPolls() { h.endPolls() }

// untilPollsEnd returns a context that also ends with EndPolls.
func (h *Handler) untilPollsEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(h.polling, cancel)
	return ctx, func() { stop(); cancel() }
}

func (h *Handler) settings() Settings { return h.cfg.Settings().withDefaults() }

func (h *Handler) perQueue(q partition.Queue) PerQueue { return h.cfg.PerQueue(q).withDefaults() }

// decoder reads requests by the limits in force; adds count from now.
func (h *Handler) decoder() wire.Decoder {
	return wire.Decoder{Limits: h.settings().Limits, Now: task.At(time.Now())}
}

// unrouted returns who serves requests without a partition.
func (h *Handler) unrouted() (matchingpb.MatchingServiceServer, error) {
	if h.cfg.Unrouted == nil {
		return nil, task.Errorf(task.Invalid, "task_queue.partition is missing: this node routes no requests, so name a partition, 0 is the root")
	}
	return h.cfg.Unrouted, nil
}

// on runs f on the partition, once more when f caught it closing: by then it has
// been unloaded and is loaded again.
func (h *Handler) on(ctx context.Context, p partition.ID, use engine.Use, f func(*queue.Queue) error) error {
	for retried := false; ; retried = true {
		q, err := h.cfg.Engine.Queue(ctx, p, use)
		if err != nil {
			return err
		}
		err = f(q)
		if retried || !errors.Is(err, task.PartitionClosing) {
			return err
		}
	}
}

// batchQueue returns the partition for a batch. The only batch of a request waits
// until it is loaded, as a single call does: there is nobody else to hold up.
func (h *Handler) batchQueue(ctx context.Context, p partition.ID, use engine.Use, only bool) (*queue.Queue, error) {
	if only {
		return h.cfg.Engine.Queue(ctx, p, use)
	}
	return h.cfg.Engine.QueueNow(ctx, p, use)
}

// takesAdds refuses adds while the store takes no writes.
func (h *Handler) takesAdds() error {
	if err := h.cfg.Healthy(); err != nil {
		return task.Errorf(task.StoreUnavailable, "the store takes no writes now: %w", err)
	}
	return nil
}

// sendCounts puts the counts in force into the trailer of a single call, and
// checks those that came in its header.
func (h *Handler) sendCounts(ctx context.Context, p partition.ID, use engine.Use) error {
	if callOf(ctx) == nil {
		return nil // a call within the process reads the settings itself
	}
	if err := h.tellCounts(ctx, p.Queue); err != nil {
		return err
	}
	caller, err := wire.ParsePartitionCountsFromIncomingContext(ctx)
	if err != nil {
		return task.Errorf(task.Invalid, "header %s: %w", wire.CountsHeader, err)
	}
	return h.cfg.Engine.CheckCaller(p, use, caller.Counts)
}

// tellCounts puts the counts in force into the trailer of a single call.
func (h *Handler) tellCounts(ctx context.Context, q partition.Queue) error {
	if callOf(ctx) == nil {
		return nil
	}
	if err := (wire.PartitionCounts{Counts: h.cfg.Engine.Counts(q)}).SetTrailer(ctx); err != nil {
		return task.Errorf(task.Internal, "setting the trailer: %w", err)
	}
	return nil
}
