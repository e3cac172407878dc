package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// used is what the two sides have used so far.
type used struct {
	client, server   time.Duration // CPU
	commits, records float64       // of the server's store
	calls            int64         // gRPC calls of producers and workers
}

// clockTicks is the unit of CPU time in /proc, which is 100 a second on every
// Linux that Go runs on.
const clockTicks = 100

// ownCPU is the CPU time of this process.
func ownCPU() (time.Duration, error) {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0, fmt.Errorf("reading the own CPU time: %w", err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()), nil
}

// cpuOf is the CPU time of a process.
func cpuOf(pid int) (time.Duration, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the server's CPU time: %w", err)
	}
	return parseStat(string(content))
}

// parseStat adds up utime and stime, the 14th and 15th field. The second field
// is the name in parentheses, which may hold anything.
func parseStat(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0, errors.New("the server's CPU time cannot be read: /proc/PID/stat is too short")
	}
	var ticks int64
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("the server's CPU time cannot be read: %w", err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks, nil
}

// maxMemoryOf is the most memory that a process has had resident, in MB.
func maxMemoryOf(pid int) (float64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("reading the server's memory: %w", err)
	}
	for line := range strings.Lines(string(content)) {
		if value, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
			if err != nil {
				return 0, fmt.Errorf("the server's memory cannot be read: %w", err)
			}
			return kb / 1024, nil
		}
	}
	return 0, errors.New("the server's memory cannot be read: /proc/PID/status lacks VmHWM")
}

// Names of the metrics that count the store's work.
const (
	commitsMetric = "taskring_commit_duration_seconds" // its count
	recordsMetric = "taskring_commit_records"          // its sum
)

// storeWork reads how many commits and records a server's store has made.
func storeWork(ctx context.Context, httpAddr string) (commits, records float64, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+httpAddr+"/metrics", nil)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the server's metrics: %w", err)
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the server's metrics: %w", err)
	}
	defer func() { _ = reply.Body.Close() }() // it was only read
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(reply.Body)
	if err != nil {
		return 0, 0, fmt.Errorf("reading the server's metrics: %w", err)
	}
	commits, _ = histogram(families[commitsMetric])
	_, records = histogram(families[recordsMetric])
	return commits, records, nil
}

// histogram adds up count and sum over all series of a family; both are 0 for
// one that was not used yet.
func histogram(f *dto.MetricFamily) (count, sum float64) {
	for _, m := range f.GetMetric() {
		count += float64(m.GetHistogram().GetSampleCount())
		sum += m.GetHistogram().GetSampleSum()
	}
	return count, sum
}
