package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
)

func TestPercentiles(t *testing.T) {
	s := make(spans, 0, 100)
	for i := int64(1); i <= 100; i++ {
		s = append(s, i*1000)
	}
	for p, want := range map[float64]float64{0: 1, 0.5: 50, 0.501: 51, 0.99: 99, 1: 100} {
		if got := s.micros(p); float64(*got) != want {
			t.Errorf("of 1 to 100 us the %v part is %v, want %v", p, *got, want)
		}
	}
	if spans(nil).micros(0.5) != nil {
		t.Error("there is a median of nothing")
	}
}

// TestPercentileLaw: so many values are at most the percentile, and so many at
// least.
func TestPercentileLaw(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := spans(rapid.SliceOfN(rapid.Int64Range(0, 50), 1, 200).Draw(t, "spans"))
		slices.Sort(s)
		p := rapid.SampledFrom([]float64{0.5, 0.9, 0.99}).Draw(t, "part")
		got := int64(math.Round(float64(*s.micros(p)) * 1e3))
		below, upTo := 0, 0
		for _, v := range s {
			if v < got {
				below++
			}
			if v <= got {
				upTo++
			}
		}
		if want := p * float64(len(s)); float64(upTo) < want-1e-3 || float64(below) >= want {
			t.Fatalf("%v of %v is %d: %d below, %d up to it", p, s, got, below, upTo)
		}
	})
}

func TestLedgerJudges(t *testing.T) {
	l := newLedger(6, 100)
	at := func(n int) place { return place{0, uint64(100 + n)} }
	for n := range 6 {
		if got := len(l.payload(n)); got != 100 {
			t.Fatalf("a payload has %d bytes, want 100", got)
		}
		l.call(n)
		if n != 5 { // the answer of 5 was lost
			l.answer(n, at(n))
		}
	}
	for _, r := range []struct{ number, under int }{{0, 0}, {1, 1}, {2, 2}, {2, 2}, {2, 2}, {3, 4}, {5, 5}} {
		if !l.receive(l.payload(r.number), at(r.under)) {
			t.Errorf("the receipt of %d is refused", r.number)
		}
	}
	if got, want := l.check(), (verdict{received: 5, lost: 1, dups: 2, swapped: 1}); got != want {
		t.Errorf("the verdict is %+v, want %+v", got, want)
	}
	select {
	case <-l.all:
		t.Error("all are received although 4 is missing")
	default:
	}
	l.receive(l.payload(4), at(4))
	select {
	case <-l.all:
	default:
		t.Error("not all are received")
	}
	if l.receive([]byte("short"), at(0)) || l.receive(l.payload(6), at(0)) {
		t.Error("a task of someone else is accepted")
	}
}

func TestSpansNeedBothEnds(t *testing.T) {
	l := newLedger(3, numberSize)
	l.records[0].called.Store(1000)
	l.records[0].answered.Store(4000)
	l.records[1].called.Store(2000)
	l.records[2].called.Store(5000)
	l.records[2].answered.Store(6000)
	if got := l.between(calledAt, answeredAt); !slices.Equal(got, spans{1000, 3000}) {
		t.Errorf("got %v, want the spans of the two that were answered", got)
	}
	if got := l.last(answeredAt); got != 6*time.Microsecond {
		t.Errorf("the last answer is at %v", got)
	}
}

func TestParseStat(t *testing.T) {
	stat := "4242 (a ) b) (c)) S 1 2 3 4 5 6 7 8 9 10 150 50 13 14 15"
	if got, err := parseStat(stat); err != nil || got != 2*time.Second {
		t.Errorf("got %v, %v, want 2s", got, err)
	}
	if _, err := parseStat("4242 (x) S 1 2"); err == nil {
		t.Error("a short line passes")
	}
	if _, err := cpuOf(os.Getpid()); err != nil {
		t.Error(err)
	}
	if mb, err := maxMemoryOf(os.Getpid()); err != nil || mb < 1 {
		t.Errorf("this process had %v MB, %v", mb, err)
	}
}

func TestFlags(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string // part of the error; empty: none
	}{
		"defaults":        {nil, ""},
		"mode":            {[]string{"--mode", "sprint"}, "flow, backlog, latency"},
		"no tasks":        {[]string{"--tasks", "0"}, "--tasks 0"},
		"no address":      {[]string{"--address", ""}, "--address"},
		"payload":         {[]string{"--payload", "7"}, "--payload 7"},
		"no workers":      {[]string{"--workers", "0"}, "--workers 0"},
		"negative rate":   {[]string{"--rate", "-1"}, "--rate"},
		"durability":      {[]string{"--durability", "fast"}, "--durability"},
		"everything else": {[]string{"--mode", "latency", "--rate", "5", "--outstanding", "64", "--durability", "hand-off", "-o", "json"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var f flags
			cmd := newCommand(&f)
			if err := cmd.ParseFlags(c.args); err != nil {
				t.Fatal(err)
			}
			err := f.complete(cmd.Flags().Changed)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
			if err != nil && exit.Of(err) != exit.Usage {
				t.Errorf("%v is no usage error", err)
			}
		})
	}
}

func TestDefaultsOfTheMode(t *testing.T) {
	var f flags
	cmd := newCommand(&f)
	if err := cmd.ParseFlags([]string{"--mode", "latency"}); err != nil {
		t.Fatal(err)
	}
	if err := f.complete(cmd.Flags().Changed); err != nil || f.rate != defaultLatencyRate || f.tasks != defaultLatencyTasks {
		t.Errorf("latency: %v, rate %v, %d tasks", err, f.rate, f.tasks)
	}
	f = flags{}
	cmd = newCommand(&f)
	if err := f.complete(cmd.Flags().Changed); err != nil || f.rate != 0 || f.tasks != defaultTasks {
		t.Errorf("flow: %v, rate %v, %d tasks", err, f.rate, f.tasks)
	}
}

// TestJSONFields pins the names that programs read.
func TestJSONFields(t *testing.T) {
	var b bytes.Buffer
	if err := (&figures{}).print(&b, output.JSON); err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || bytes.Count(b.Bytes(), []byte("\n")) != 1 {
		t.Fatalf("%q is not one line of JSON: %v", b.String(), err)
	}
	want := strings.Fields(`adds_per_s tasks_per_s drain_per_s add_p50_us add_p99_us lat_p50_us lat_p99_us received lost dups
		server_cpu_us_per_task client_cpu_us_per_task server_max_rss_mb commits_per_task records_per_task calls_per_task`)
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("the fields are %v, want %v", names, want)
	}
	if got["adds_per_s"] != nil || got["lost"] != 0.0 {
		t.Errorf("a figure that is not there is %v, a count of none %v", got["adds_per_s"], got["lost"])
	}
}

func TestTableOfFigures(t *testing.T) {
	rate, small := rounded(12345.678), rounded(1.03123)
	var b bytes.Buffer
	if err := (&figures{AddsPerS: &rate, RecordsPerTask: &small, Received: 5}).print(&b, output.Table); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"adds_per_s        12346\n", "records_per_task  1.031\n", "received          5\n"} {
		if !strings.Contains(b.String(), line) {
			t.Errorf("the table lacks %q:\n%s", line, b.String())
		}
	}
	if strings.Contains(b.String(), "drain_per_s") {
		t.Error("a figure that is not there is printed")
	}
}

func TestRounded(t *testing.T) {
	for v, want := range map[float64]figure{
		12345.678: 12346, 1234.5678: 1234.6, 99.98765: 99.988, 1.03123: 1.031, 0: 0, 0.0004: 0,
	} {
		if got := rounded(v); got != want {
			t.Errorf("%v is rounded to %v, want %v", v, got, want)
		}
	}
}

// TestTableHasTheWordsOfJSON: what a person reads and what a program reads have
// the same names.
func TestTableHasTheWordsOfJSON(t *testing.T) {
	one := figure(1)
	all := figures{
		AddsPerS: &one, TasksPerS: &one, DrainPerS: &one, AddP50US: &one, AddP99US: &one, LatP50US: &one, LatP99US: &one,
		ServerCPUUSPerTask: &one, ClientCPUUSPerTask: &one, ServerMaxRSSMB: &one, CommitsPerTask: &one, RecordsPerTask: &one, CallsPerTask: &one,
	}
	var table, line bytes.Buffer
	if err := errors.Join(all.print(&table, output.Table), all.print(&line, output.JSON)); err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(line.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	var words []string
	for row := range strings.Lines(table.String()) {
		words = append(words, strings.Fields(row)[0])
	}
	slices.Sort(words)
	if names := slices.Sorted(maps.Keys(fields)); !slices.Equal(words, names) {
		t.Errorf("the table has %v, the JSON %v", words, names)
	}
}

func TestProgressLine(t *testing.T) {
	if got := progressLine(flow, 5, nil); got != "flow: starting" {
		t.Errorf("before there is a ledger it says %q", got)
	}
	l := newLedger(5, numberSize)
	l.answer(0, place{})
	l.answer(1, place{0, 1})
	l.receive(l.payload(1), place{0, 1})
	if got := progressLine(backlog, 5, l); got != "backlog: of 5 tasks 2 added, 1 received" {
		t.Errorf("it says %q", got)
	}
}
