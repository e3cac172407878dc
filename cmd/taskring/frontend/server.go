package frontend

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/reflection"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/dynamic"
	"github.com/taskring/taskring/dynamicconfig/file"
	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/matchingpb"
)

// What a server takes and how it probes its connections; the same as a node.
const (
	requestBytes     = 12 << 20
	streams          = 100_000
	keepaliveTime    = 30 * time.Second
	keepaliveTimeout = 10 * time.Second
	keepaliveMinTime = 5 * time.Second
)

// config is what a server is made of.
type config struct {
	client     client.Options // Meter and Dynamic are set by the server
	grpcAddr   string
	httpAddr   string
	reflection bool
	dynamic    dynamic.Flags // where the client's settings come from
	logger     *slog.Logger
}

// server is a frontend with its ports. Whoever made one stops it.
type server struct {
	logger   *slog.Logger
	grpcL    net.Listener
	httpL    net.Listener
	client   *client.Client
	grpc     *grpc.Server
	http     *http.Server
	health   *health.Server
	polls    *polls
	provider *sdk.MeterProvider
	source   *file.Source // of the settings; nil without a file
	ready    atomic.Bool
	serving  sync.WaitGroup
}

// newServer takes the ports and makes the client; it connects to nothing yet.
func newServer(ctx context.Context, cfg config) (s *server, err error) {
	s = &server{logger: cfg.logger, health: health.NewServer()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.stop(ctx))
		}
	}()
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return s, fmt.Errorf("metrics: %w", err)
	}
	s.provider = sdk.NewMeterProvider(sdk.WithReader(exporter))
	meter := s.provider.Meter("github.com/taskring/taskring/cmd/taskring/frontend")
	cfg.client.Meter, cfg.client.Dynamic = meter, live.New(nil)
	if cfg.dynamic.Path != "" {
		s.source, err = file.Open(file.Config{
			Path: cfg.dynamic.Path, StartOnDefaults: cfg.dynamic.StartOnDefaults(), Registry: dynamic.Registry(),
			Settings: cfg.client.Dynamic, Logger: cfg.logger, Meter: meter,
		})
		if err != nil {
			return s, err
		}
	}
	if s.client, err = client.NewClient(cfg.client); err != nil {
		return s, err
	}
	s.polls = &polls{
		prefix: "f" + strconv.FormatUint(rand.Uint64(), 36) + "-",
		cancel: func(ctx context.Context, in *matchingpb.CancelPollRequest) bool {
			out, err := s.client.CancelPoll(ctx, in)
			return err == nil && out.GetFound()
		},
	}
	g, err := newGuard(meter, s.polls)
	if err != nil {
		return s, err
	}
	var tcp net.ListenConfig
	if s.grpcL, err = tcp.Listen(ctx, "tcp", cfg.grpcAddr); err != nil {
		return s, fmt.Errorf("the gRPC address cannot be taken: %w", err)
	}
	if s.httpL, err = tcp.Listen(ctx, "tcp", cfg.httpAddr); err != nil {
		return s, fmt.Errorf("the HTTP address cannot be taken: %w", err)
	}
	s.grpc = s.newGRPC(g, cfg.reflection)
	s.http = s.newHTTP(registry)
	return s, nil
}

func (s *server) newGRPC(g *guard, reflected bool) *grpc.Server {
	out := grpc.NewServer(
		grpc.MaxRecvMsgSize(requestBytes),
		grpc.MaxConcurrentStreams(streams),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveMinTime, PermitWithoutStream: true}),
		grpc.UnaryInterceptor(g.unary),
	)
	matchingpb.RegisterMatchingServiceServer(out, client.NewFrontend(s.client))
	healthpb.RegisterHealthServer(out, s.health)
	if reflected {
		reflection.Register(out)
	}
	s.setServing(false)
	return out
}

// newHTTP serves the operator's endpoints:
//
//	/livez    200 while the process runs
//	/readyz   200 while the frontend serves, else 503; it does not look at the nodes, as
//	          one that is down must not take every frontend out of service
//	/metrics  Prometheus exposition
func (s *server) newHTTP(registry *prometheus.Registry) *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !s.ready.Load() {
			answer(w, http.StatusServiceUnavailable, "the frontend is starting or stopping")
			return
		}
		answer(w, http.StatusOK, "ok")
	})
	mux.Handle("/metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	return &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // who asked has left
}

func (s *server) setServing(ok bool) {
	status := healthpb.HealthCheckResponse_NOT_SERVING
	if ok {
		status = healthpb.HealthCheckResponse_SERVING
	}
	s.ready.Store(ok)
	s.health.SetServingStatus("", status)
	s.health.SetServingStatus(matchingpb.MatchingService_ServiceDesc.ServiceName, status)
}

// start begins to serve, and to follow the settings.
func (s *server) start() {
	if s.source != nil {
		s.source.Start()
	}
	s.serving.Go(func() {
		if err := s.grpc.Serve(s.grpcL); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			s.logger.Error("the gRPC listener broke, no new connections are taken", "address", s.grpcL.Addr(), "error", err)
		}
	})
	s.serving.Go(func() {
		if err := s.http.Serve(s.httpL); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("the HTTP listener broke, probes and metrics are gone", "address", s.httpL.Addr(), "error", err)
		}
	})
	s.setServing(true)
}

// stop ends the server as the package's doc says. When ctx ends first what still
// runs is broken off, and the error says so. It may be called before start.
func (s *server) stop(ctx context.Context) error {
	var errs []error
	s.ready.Store(false)
	s.health.Shutdown()
	if s.grpc != nil {
		errs = append(errs, s.stopGRPC(ctx))
	}
	if s.client != nil {
		s.client.Stop()
	}
	if s.source != nil {
		errs = append(errs, s.source.Stop())
	}
	if s.http != nil {
		errs = append(errs, s.http.Close())
	}
	s.serving.Wait()
	for _, l := range []net.Listener{s.grpcL, s.httpL} {
		if l == nil {
			continue
		}
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.provider != nil {
		errs = append(errs, s.provider.Shutdown(context.WithoutCancel(ctx)))
	}
	return errors.Join(errs...)
}

func (s *server) stopGRPC(ctx context.Context) error {
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		s.grpc.GracefulStop()
	}()
	s.polls.stop(ctx)
	select {
	case <-graceful:
		return nil
	case <-ctx.Done():
		s.grpc.Stop()
		<-graceful
		return fmt.Errorf("calls were broken off: %w", context.Cause(ctx))
	}
}
