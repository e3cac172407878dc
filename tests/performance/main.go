package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "performance:", err)
		os.Exit(1)
	}
}

// run measures and writes the page; progress goes to log.
func run(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("performance", flag.ContinueOnError)
	flags.SetOutput(log)
	binary := flags.String("taskring", "bin/taskring", "the binary to measure")
	page := flags.String("out", "docs/performance.md", "the page to write")
	scale := flags.Int("scale", 1, "divides the number of tasks of each run")
	runs := flags.Int("runs", 3, "how often each workload is run; the page has the medians")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("reading the flags: %w", err)
	}
	if *scale < 1 || *runs < 1 {
		return fmt.Errorf("-scale is %d and -runs %d, both have to be at least 1", *scale, *runs)
	}
	var results []result
	for _, w := range workloads() {
		w.tasks = max(1, w.tasks / *scale)
		_, _ = fmt.Fprintln(log, "taskring", strings.Join(w.args(), " "))
		measured := make([]figures, *runs)
		for i := range measured {
			var err error
			if measured[i], err = measure(ctx, *binary, w); err != nil {
				return fmt.Errorf("taskring %s: %w", strings.Join(w.args(), " "), err)
			}
		}
		results = append(results, result{w, medians(measured)})
	}
	if err := os.MkdirAll(filepath.Dir(*page), 0o750); err != nil {
		return fmt.Errorf("making the folder of the page: %w", err)
	}
	if err := os.WriteFile(*page, render(thisMachine(), *runs, results), 0o600); err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	return nil
}

// workload is one run of taskring bench.
type workload struct {
	mode        string
	tasks       int
	outstanding int // adds in flight a producer
	rate        int // adds a second; 0 is as fast as it goes
}

// workloads returns the runs of the page: every mode with one add in flight a
// producer and with 64. Latency is taken at a rate far below saturation, where
// it is the path that counts and not the queue.
func workloads() []workload {
	return []workload{
		{mode: "flow", tasks: 100_000, outstanding: 1},
		{mode: "flow", tasks: 500_000, outstanding: 64},
		{mode: "backlog", tasks: 100_000, outstanding: 1},
		{mode: "backlog", tasks: 500_000, outstanding: 64},
		{mode: "latency", tasks: 4_000, outstanding: 1, rate: 200},
		{mode: "latency", tasks: 40_000, outstanding: 64, rate: 2_000},
	}
}

func (w workload) args() []string {
	args := []string{
		"bench", "--mode", w.mode, "--tasks", strconv.Itoa(w.tasks), "--payload", "256",
		"--producers", "16", "--workers", "16", "--outstanding", strconv.Itoa(w.outstanding),
	}
	if w.rate > 0 {
		args = append(args, "--rate", strconv.Itoa(w.rate))
	}
	return append(args, "--durability", "durable", "-o", "json")
}

// figures are what taskring bench prints; a figure that a mode does not have
// is nil.
type figures struct {
	AddsPerS           *float64 `json:"adds_per_s"`
	TasksPerS          *float64 `json:"tasks_per_s"`
	DrainPerS          *float64 `json:"drain_per_s"`
	AddP50US           *float64 `json:"add_p50_us"`
	AddP99US           *float64 `json:"add_p99_us"`
	LatP50US           *float64 `json:"lat_p50_us"`
	LatP99US           *float64 `json:"lat_p99_us"`
	Received           *int     `json:"received"`
	Lost               *int     `json:"lost"`
	Dups               *int     `json:"dups"`
	ServerCPUUSPerTask *float64 `json:"server_cpu_us_per_task"`
	ClientCPUUSPerTask *float64 `json:"client_cpu_us_per_task"`
	ServerMaxRSSMB     *float64 `json:"server_max_rss_mb"`
	CommitsPerTask     *float64 `json:"commits_per_task"`
	RecordsPerTask     *float64 `json:"records_per_task"`
	CallsPerTask       *float64 `json:"calls_per_task"`
}

// all returns every figure that has a median, always in the same order.
func (f *figures) all() []**float64 {
	return []**float64{
		&f.AddsPerS, &f.TasksPerS, &f.DrainPerS, &f.AddP50US, &f.AddP99US, &f.LatP50US, &f.LatP99US,
		&f.ServerCPUUSPerTask, &f.ClientCPUUSPerTask, &f.ServerMaxRSSMB, &f.CommitsPerTask, &f.RecordsPerTask, &f.CallsPerTask,
	}
}

// medians returns the median of each figure over the runs that have it.
func medians(runs []figures) figures {
	var m figures
	for i, into := range m.all() {
		var values []float64
		for r := range runs {
			if v := *runs[r].all()[i]; v != nil {
				values = append(values, *v)
			}
		}
		if len(values) == 0 {
			continue
		}
		slices.Sort(values)
		median := (values[(len(values)-1)/2] + values[len(values)/2]) / 2
		*into = &median
	}
	return m
}

// result is a workload and what its runs gave.
type result struct {
	workload
	figures
}

// measure runs one workload and refuses figures of a run that was not right.
func measure(ctx context.Context, binary string, w workload) (figures, error) {
	var f figures
	var stderr bytes.Buffer
	//nolint:gosec // the binary is the one that the caller asks to measure
	cmd := exec.CommandContext(ctx, binary, w.args()...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return f, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	if err := json.Unmarshal(out, &f); err != nil {
		return f, fmt.Errorf("its output is not one JSON line: %w", err)
	}
	return f, f.validate(w.tasks)
}

// validate reports whether every task was received exactly once.
func (f *figures) validate(tasks int) error {
	switch {
	case f.Received == nil || f.Lost == nil || f.Dups == nil:
		return errors.New("its output lacks received, lost or dups")
	case *f.Lost != 0 || *f.Dups != 0 || *f.Received != tasks:
		return fmt.Errorf("of %d tasks %d were received, %d lost, %d handed out twice", tasks, *f.Received, *f.Lost, *f.Dups)
	}
	return nil
}
