package bench

import (
	"io"
	"strconv"

	"github.com/taskring/taskring/cmd/taskring/output"
)

// figures are what a run came to. A figure that its mode does not have, or that
// cannot be known of nodes elsewhere, is nil.
type figures struct {
	AddsPerS           *float64 `json:"adds_per_s"`
	TasksPerS          *float64 `json:"tasks_per_s"`
	DrainPerS          *float64 `json:"drain_per_s"`
	AddP50US           *float64 `json:"add_p50_us"`
	AddP99US           *float64 `json:"add_p99_us"`
	LatP50US           *float64 `json:"lat_p50_us"`
	LatP99US           *float64 `json:"lat_p99_us"`
	Received           int      `json:"received"`
	Lost               int      `json:"lost"`
	Dups               int      `json:"dups"`
	ServerCPUUSPerTask *float64 `json:"server_cpu_us_per_task"`
	ClientCPUUSPerTask *float64 `json:"client_cpu_us_per_task"`
	ServerMaxRSSMB     *float64 `json:"server_max_rss_mb"`
	CommitsPerTask     *float64 `json:"commits_per_task"`
	RecordsPerTask     *float64 `json:"records_per_task"`
	CallsPerTask       *float64 `json:"calls_per_task"`
}

// figures computes all but the server's memory.
func (r *run) figures(v verdict, before, after usage) *figures {
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
		{"added", number(f.AddsPerS, "/s")},
		{"through", number(f.TasksPerS, "/s")},
		{"drained", number(f.DrainPerS, "/s")},
		{"add, median", number(f.AddP50US, " us")},
		{"add, 99 %", number(f.AddP99US, " us")},
		{"add to receive, median", number(f.LatP50US, " us")},
		{"add to receive, 99 %", number(f.LatP99US, " us")},
		{"received", strconv.Itoa(f.Received)},
		{"lost", strconv.Itoa(f.Lost)},
		{"twice", strconv.Itoa(f.Dups)},
		{"server CPU per task", number(f.ServerCPUUSPerTask, " us")},
		{"client CPU per task", number(f.ClientCPUUSPerTask, " us")},
		{"server memory at most", number(f.ServerMaxRSSMB, " MB")},
		{"commits per task", number(f.CommitsPerTask, "")},
		{"records per task", number(f.RecordsPerTask, "")},
		{"calls per task", number(f.CallsPerTask, "")},
	})
}

// number prints a figure with three digits that count and its unit; nothing for
// one that is not there.
func number(v *float64, unit string) string {
	if v == nil {
		return ""
	}
	digits := 3
	for limit := 1.0; digits > 0 && *v >= limit; limit *= 10 {
		digits--
	}
	return strconv.FormatFloat(*v, 'f', digits, 64) + unit
}
