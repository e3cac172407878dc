package file

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.uber.org/goleak"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	limit  = dynamicconfig.Global(dynamicconfig.Int{Key: "test.limit", Default: 1, Max: 2000, Doc: "A number.", Formerly: []string{"test.bound"}})
	toggle = dynamicconfig.Global(dynamicconfig.Bool{Key: "test.switch", Doc: "Another setting."})
)

// patience bounds waits for what has to come.
const patience = 20 * time.Second

// bench is a source with what surrounds it.
type bench struct {
	path     string
	settings *live.Settings
	source   *Source
	values   chan int // of limit, whenever it changed
	log      *book
	reader   *metric.ManualReader
}

// newBench opens a source that nothing but notification makes look at the file.
func newBench(tb testing.TB, path string, change func(*Config)) *bench {
	tb.Helper()
	b := &bench{path: path, settings: live.New(nil), values: make(chan int, 2000), log: &book{refused: make(chan string, 1000)}}
	b.reader = metric.NewManualReader()
	provider := metric.NewMeterProvider(metric.WithReader(b.reader))
	r, err := dynamicconfig.NewRegistry(limit, toggle)
	if err != nil {
		tb.Fatal(err)
	}
	cfg := Config{
		Path: path, Registry: r, Settings: b.settings, Settle: 30 * time.Millisecond, Poll: time.Hour,
		Logger: slog.New(b.log), Meter: provider.Meter(""),
	}
	if change != nil {
		change(&cfg)
	}
	if b.source, err = Open(cfg); err != nil {
		tb.Fatal(err)
	}
	_, sub := live.Subscribe(b.settings, limit.Reading(), func(_, is int) { b.values <- is })
	tb.Cleanup(func() {
		sub.Stop()
		if err := b.source.Stop(); err != nil {
			tb.Error(err)
		}
		b.settings.Close()
		_ = provider.Shutdown(context.Background())
	})
	return b
}

// started is a bench that follows a file with the limit 10.
func started(tb testing.TB) *bench {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "settings.yaml")
	write(tb, path, "test.limit: 10\n")
	b := newBench(tb, path, nil)
	b.source.Start()
	return b
}

// await waits until the limit is n.
func (b *bench) await(tb testing.TB, n int) {
	tb.Helper()
	for limit.Get(b.settings.Snapshot()) != n {
		select {
		case <-b.values:
		case <-time.After(patience):
			tb.Fatalf("the limit is %d, want %d; %v", limit.Get(b.settings.Snapshot()), n, b.source.Status())
		}
	}
}

// awaitRefusal waits until the log says that a file is refused, and returns why.
func (b *bench) awaitRefusal(tb testing.TB) string {
	tb.Helper()
	select {
	case why := <-b.log.refused:
		return why
	case <-time.After(patience):
		tb.Fatal("nothing was refused")
		return ""
	}
}

// gauge returns the value of a metric and its hash label.
func (b *bench) gauge(tb testing.TB, name string) (float64, string) {
	tb.Helper()
	var all metricdata.ResourceMetrics
	if err := b.reader.Collect(context.Background(), &all); err != nil {
		tb.Fatal(err)
	}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name == name {
				return onlyPoint(tb, m)
			}
		}
	}
	tb.Fatalf("no metric %s", name)
	return 0, ""
}

func onlyPoint(tb testing.TB, m metricdata.Metrics) (float64, string) {
	tb.Helper()
	switch points := m.Data.(type) {
	case metricdata.Gauge[int64]:
		if len(points.DataPoints) == 1 {
			hash, _ := points.DataPoints[0].Attributes.Value("hash")
			return float64(points.DataPoints[0].Value), hash.AsString()
		}
	case metricdata.Gauge[float64]:
		if len(points.DataPoints) == 1 {
			return points.DataPoints[0].Value, ""
		}
	}
	tb.Fatalf("%s has not one series: %+v", m.Name, m.Data)
	return 0, ""
}

// book is a log that remembers its messages.
type book struct {
	mu      sync.Mutex
	lines   []string
	refused chan string // why, of each refusal; what does not fit is dropped
}

// Enabled implements slog.Handler.
func (b *book) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (b *book) WithAttrs([]slog.Attr) slog.Handler { return b }

// WithGroup implements slog.Handler.
func (b *book) WithGroup(string) slog.Handler { return b }

// Handle implements slog.Handler.
func (b *book) Handle(_ context.Context, r slog.Record) error {
	line := r.Level.String() + " " + r.Message
	why := ""
	r.Attrs(func(a slog.Attr) bool {
		line += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		if a.Key == "error" {
			why = a.Value.String()
		}
		return true
	})
	b.mu.Lock()
	b.lines = append(b.lines, line)
	b.mu.Unlock()
	if r.Level == slog.LevelError {
		select {
		case b.refused <- why:
		default:
		}
	}
	return nil
}

// take returns the lines so far and forgets them.
func (b *book) take() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	lines := b.lines
	b.lines = nil
	return lines
}

func write(tb testing.TB, path, content string) {
	tb.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
}

// replace puts a file in place as editors do.
func replace(tb testing.TB, path, content string) {
	tb.Helper()
	write(tb, path+".new", content)
	must(tb, os.Rename(path+".new", path))
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
