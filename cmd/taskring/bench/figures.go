package bench

import (
	"io"
	"math"
	"strconv"

	"github.com/taskring/taskring/cmd/taskring/output"
)

// figure is a number that was measured, rounded.
type figure float64

// figures are what a run came to. A figure that its mode does not have, or that
// cannot be known of nodes elsewhere, is nil.
type figures struct {
	AddsPerS           *figure `json:"adds_per_s"`
	TasksPerS          *figure `json:"tasks_per_s"`
	DrainPerS          *figure `json:"drain_per_s"`
	AddP50US           *figure `json:"add_p50_us"`
	AddP99US           *figure `json:"add_p99_us"`
	LatP50US           *figure `json:"lat_p50_us"`
	LatP99US           *figure `json:"lat_p99_us"`
	Received           int     `json:"received"`
	Lost               int     `json:"lost"`
	Dups               int     `json:"dups"`
	ServerCPUUSPerTask *figure `json:"server_cpu_us_per_task"`
	ClientCPUUSPerTask *figure `json:"client_cpu_us_per_task"`
	ServerMaxRSSMB     *figure `json:"server_max_rss_mb"`
	CommitsPerTask     *figure `json:"commits_per_task"`
	RecordsPerTask     *figure `json:"records_per_task"`
	CallsPerTask       *figure `json:"calls_per_task"`
}

// figures computes all but the server's memory.
func (r *run) figures(v verdict, before, after used) *figures {
	tasks := float64(r.tasks)
	added := r.ledger.between(calledAt, answeredAt)
	f := &figures{
		Received: v.received, Lost: v.lost, Dups: v.dups,
		AddsPerS:           perSecond(len(added), r.ledger.last(answeredAt)-r.began.adding),
		AddP50US:           added.micros(0.50),
		AddP99US:           added.micros(0.99),
		ClientCPUUSPerTask: ratio(float64((after.client - before.client).Microseconds()), tasks),
		CallsPerTask:       ratio(float64(after.calls-before.calls), tasks),
	}
	if r.mode == backlog {
		f.DrainPerS = perSecond(v.received, r.ledger.last(receivedAt)-r.began.draining)
	} else {
		through := r.ledger.between(calledAt, receivedAt)
		f.TasksPerS = perSecond(v.received, r.ledger.last(receivedAt)-r.began.adding)
		f.LatP50US, f.LatP99US = through.micros(0.50), through.micros(0.99)
	}
	if r.server != nil {
		f.ServerCPUUSPerTask = ratio(float64((after.server - before.server).Microseconds()), tasks)
		f.CommitsPerTask = ratio(after.commits-before.commits, tasks)
		f.RecordsPerTask = ratio(after.records-before.records, tasks)
	}
	return f
}

func (f *figures) print(w io.Writer, format output.Format) error {
	if format == output.JSON {
		return output.Line(w, f)
	}
	return output.WriteFields(w, [][2]string{
		{"adds_per_s", number(f.AddsPerS)},
		{"tasks_per_s", number(f.TasksPerS)},
		{"drain_per_s", number(f.DrainPerS)},
		{"add_p50_us", number(f.AddP50US)},
		{"add_p99_us", number(f.AddP99US)},
		{"lat_p50_us", number(f.LatP50US)},
		{"lat_p99_us", number(f.LatP99US)},
		{"received", strconv.Itoa(f.Received)},
		{"lost", strconv.Itoa(f.Lost)},
		{"dups", strconv.Itoa(f.Dups)},
		{"server_cpu_us_per_task", number(f.ServerCPUUSPerTask)},
		{"client_cpu_us_per_task", number(f.ClientCPUUSPerTask)},
		{"server_max_rss_mb", number(f.ServerMaxRSSMB)},
		{"commits_per_task", number(f.CommitsPerTask)},
		{"records_per_task", number(f.RecordsPerTask)},
		{"calls_per_task", number(f.CallsPerTask)},
	})
}

// number prints a figure; nothing for one that is not there.
func number(v *figure) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*v), 'f', -1, 64)
}

// rounded leaves a figure the digits that count: three behind the point, one
// from 100 on, none from 10,000 on.
func rounded(v float64) figure {
	unit := 1000.0
	switch {
	case math.Abs(v) >= 10_000:
		unit = 1
	case math.Abs(v) >= 100:
		unit = 10
	}
	return figure(math.Round(v*unit) / unit)
}
