package matching

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprom "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
)

// newHTTP makes the server of the operator's endpoints:
//
//	/livez    200 while the process runs; it tests nothing else
//	/readyz   200 while the node serves and its store takes writes, else 503 and why;
//	          also tells which dynamic settings are in force, and why not those of the
//	          present file: that makes no node unready, it goes on with the last good ones
//	/metrics  Prometheus exposition
func (n *Node) newHTTP() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/livez", func(w http.ResponseWriter, _ *http.Request) { reply(w, http.StatusOK, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := n.ready(); err != nil {
			reply(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		text := "ok"
		if n.source != nil {
			text += "\n" + n.source.Status().String()
		}
		reply(w, http.StatusOK, text)
	})
	mux.Handle("/metrics", n.metrics.handler())
	return &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
}

func reply(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = fmt.Fprintln(w, text) // who asked has left
}

// ready returns why the node is not ready, or nil.
func (n *Node) ready() error {
	n.mu.Lock()
	state := n.mu.state
	n.mu.Unlock()
	switch state {
	case created:
		return errors.New("the node has not started yet")
	case stopped:
		return errors.New("the node is stopping")
	default:
		return n.healthy()
	}
}

func (n *Node) serveHTTP() {
	defer close(n.httpDone)
	if err := n.http.Serve(n.httpL); !errors.Is(err, http.ErrServerClosed) {
		n.cfg.Logger.Error("the HTTP listener broke, probes and metrics are gone", "address", n.HTTPAddr(), "error", err)
	}
}

// metrics is the node's meter provider and the registry that it is read from.
// Both are the node's own, so two nodes in one process do not mix.
type metrics struct {
	registry *prometheus.Registry
	provider *sdk.MeterProvider
}

// newMetrics makes them for a node. Its name and version are in target_info, how
// the program was built in go_build_info.
func newMetrics(cfg *Config) (*metrics, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewBuildInfoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprom.New(otelprom.WithRegisterer(registry), otelprom.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("matching: metrics: %w", err)
	}
	return &metrics{
		registry: registry,
		provider: sdk.NewMeterProvider(sdk.WithReader(exporter), sdk.WithCardinalityLimit(cfg.MetricSeries),
			sdk.WithResource(resource.NewSchemaless(
				attribute.String("service.name", "taskring"),
				attribute.String("service.version", cfg.Version),
				attribute.String("service.instance.id", cfg.Name),
			))),
	}, nil
}

func (m *metrics) meter() metric.Meter {
	return m.provider.Meter("github.com/taskring/taskring/matching")
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

func (m *metrics) close(ctx context.Context) error {
	if err := m.provider.Shutdown(ctx); err != nil {
		return fmt.Errorf("ending the metrics: %w", err)
	}
	return nil
}
