package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/taskring/taskring/matching/matchingpb"
)

// headroom is how far gRPC's own limit lies above the highest of ours, so that a request which
// is too large is refused by us, with a reason.
const headroom = 4 << 20

// Config is what a server is made of. Handler is required; zero values of the
// others are the defaults.
type Config struct {
	Handler *Handler // serves the methods

	Streams    int  // calls at a time on one connection, default 100,000
	Reflection bool // serve gRPC reflection

	KeepaliveTime    time.Duration // a connection is probed after so long without traffic; default 30 s
	KeepaliveTimeout time.Duration // and closed when it does not answer for so long; default 10 s
	// KeepaliveMinTime is how often clients may probe; default 5 s. gRPC clients
	// never do so more often than every 10 s, but their probes may arrive early.
	KeepaliveMinTime time.Duration

	Logger *slog.Logger // of listeners that break; default none
	Meter  metric.Meter // of calls; default none
}

func (c *Config) complete() error {
	if c.Handler == nil {
		return errors.New("server: Config.Handler is missing")
	}
	if c.Streams < 0 || c.KeepaliveTime < 0 || c.KeepaliveTimeout < 0 || c.KeepaliveMinTime < 0 {
		return errors.New("server: Config has a negative number or duration; 0 stands for the default")
	}
	c.Streams = cmp.Or(c.Streams, 100_000)
	c.KeepaliveTime = cmp.Or(c.KeepaliveTime, 30*time.Second)
	c.KeepaliveTimeout = cmp.Or(c.KeepaliveTimeout, 10*time.Second)
	c.KeepaliveMinTime = cmp.Or(c.KeepaliveMinTime, 5*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Server serves a Handler over gRPC. See New.
type Server struct {
	cfg    Config
	grpc   *grpc.Server
	health *health.Server

	mu struct {
		sync.Mutex
		serving []chan struct{} // one per Serve, closed when it has ended
		stopped bool
	}
}

// New makes a server; it serves nothing before Serve.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	edge, err := newEdge(cfg)
	if err != nil {
		return nil, fmt.Errorf("server: instruments: %w", err)
	}
	s := &Server{cfg: cfg, health: health.NewServer()}
	s.grpc = grpc.NewServer(
		grpc.MaxRecvMsgSize(maxRequestBytes+headroom),
		grpc.MaxConcurrentStreams(uint32(cfg.Streams)),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: cfg.KeepaliveTime, Timeout: cfg.KeepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: cfg.KeepaliveMinTime, PermitWithoutStream: true}),
		grpc.StatsHandler(edge),
		grpc.UnaryInterceptor(edge.unary),
		grpc.StreamInterceptor(edge.stream),
	)
	matchingpb.RegisterMatchingServiceServer(s.grpc, cfg.Handler)
	healthpb.RegisterHealthServer(s.grpc, s.health)
	if cfg.Reflection {
		reflection.Register(s.grpc)
	}
	s.SetServing(false)
	return s, nil
}

// Serve takes connections from l in a goroutine of its own until Stop, which
// closes l. After Stop it closes l at once.
func (s *Server) Serve(l net.Listener) {
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.stopped {
		_ = l.Close() // nobody is left to hear of it
		return
	}
	s.mu.serving = append(s.mu.serving, done)
	go func() {
		defer close(done)
		if err := s.grpc.Serve(l); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.cfg.Logger.Error("the gRPC listener broke, no new connections are taken", "address", l.Addr(), "error", err)
		}
	}()
}

// SetServing sets what grpc.health.v1 answers, for the server as a whole and for
// the service. It is NOT_SERVING until the first call.
func (s *Server) SetServing(ok bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ok {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(matchingpb.MatchingService_ServiceDesc.ServiceName, status)
}

// Stop ends serving as the package doc says and waits for it. When ctx ends
// first the calls that still run are broken off, and the error says so. It may
// be called twice and before Serve.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.mu.stopped = true
	serving := s.mu.serving
	s.mu.Unlock()

	s.health.Shutdown()
	s.cfg.Handler.EndPolls()
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	var err error
	select {
	case <-graceful:
	case <-ctx.Done():
		err = fmt.Errorf("server: calls were broken off: %w", context.Cause(ctx))
		s.grpc.Stop()
		<-graceful
	}
	for _, done := range serving {
		<-done
	}
	return err
}
