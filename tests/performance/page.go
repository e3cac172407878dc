package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// machine is what the figures depend on and the reader cannot guess.
type machine struct {
	cpu, kernel, memory, golang string
	cores                       int
}

// thisMachine reads what Linux tells about itself; elsewhere the words stay "unknown".
func thisMachine() machine {
	return machine{
		cpu:    field("/proc/cpuinfo", "model name"),
		kernel: firstLine("/proc/sys/kernel/osrelease"),
		memory: field("/proc/meminfo", "MemTotal"),
		golang: runtime.Version(),
		cores:  runtime.NumCPU(),
	}
}

// field returns the value of the first "name : value" line of a file.
func field(file, name string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(content)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

func firstLine(file string) string {
	content, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(content), "\n")
	return line
}

const intro = `# Performance

Written by ` + "`make bench`" + `; do not edit by hand. Every run starts a server of its own on an empty
directory, with an fsync before each OK, and checks every task id: none was lost, none came twice.
Producers, workers and server share the machine.

`

const budget = `
## The budget of one task

Calls and records are what a task costs; they decide the throughput. A task that flows through a waiting
worker costs the store at most 2 records, one that is drained from the backlog at most 3 beyond its add.

`

// render returns the whole page.
func render(m machine, runs int, results []result) []byte {
	var b bytes.Buffer
	b.WriteString(intro)
	fmt.Fprintf(&b, "Machine: %s, %d cores, %s memory, Linux %s, %s.\n\n", m.cpu, m.cores, m.memory, m.kernel, m.golang)
	fmt.Fprintf(&b, "Each figure is the median of %d runs.\n\n", runs)
	writeTable(&b, []string{"run", "adds/s", "tasks/s", "drained/s", "add p50 us", "p99", "add to receive p50 us", "p99"}, results,
		func(f figures) []*float64 {
			return []*float64{f.AddsPerS, f.TasksPerS, f.DrainPerS, f.AddP50US, f.AddP99US, f.LatP50US, f.LatP99US}
		})
	b.WriteString(budget)
	writeTable(&b, []string{"run", "calls", "records", "commits", "server CPU us", "client CPU us", "server memory MB at most"}, results,
		func(f figures) []*float64 {
			return []*float64{
				f.CallsPerTask, f.RecordsPerTask, f.CommitsPerTask, f.ServerCPUUSPerTask, f.ClientCPUUSPerTask, f.ServerMaxRSSMB,
			}
		})
	b.WriteString("\n## The commands\n\n```\n")
	for _, r := range results {
		fmt.Fprintf(&b, "taskring %s\n", strings.Join(r.args(), " "))
	}
	b.WriteString("```\n")
	return b.Bytes()
}

func writeTable(b *bytes.Buffer, head []string, results []result, columns func(figures) []*float64) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat(" --- |", len(head)))
	for _, r := range results {
		cells := make([]string, 0, len(head))
		cells = append(cells, r.title())
		for _, value := range columns(r.figures) {
			cells = append(cells, cell(value))
		}
		fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
	}
}

// title says in words what sets a run apart from the others.
func (r result) title() string {
	title := fmt.Sprintf("%s, %d outstanding", r.mode, r.outstanding)
	if r.rate > 0 {
		title += fmt.Sprintf(", %d/s", r.rate)
	}
	return title
}

// cell prints three digits that count; a figure that the mode does not have is
// a dash.
func cell(value *float64) string {
	switch {
	case value == nil:
		return "-"
	case *value >= 100:
		return fmt.Sprintf("%.0f", *value)
	case *value >= 10:
		return fmt.Sprintf("%.1f", *value)
	default:
		return fmt.Sprintf("%.2f", *value)
	}
}
