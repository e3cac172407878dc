package dynamicconfig

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/partition"
)

// order is an enum as code has it.
type order uint8

const (
	newest order = iota
	oldest
)

// sketch is a struct as code has it.
type sketch struct {
	Width int
	Decay time.Duration
}

// step is the item of a list of structs.
type step struct {
	Window time.Duration
	Rate   float64
}

// One setting of each kind, as packages declare them.
var (
	debug  = Global(Bool{Key: "node.debug", Doc: "Log more."})
	banner = Global(String{
		Key: "node.banner", Default: "hello", Doc: "First words.",
		Check: func(s string) error {
			if strings.Contains(s, "\n") {
				return errors.New("the text has more than one line; write one")
			}
			return nil
		},
	})
	share  = Global(Float{Key: "node.share", Default: 0.2, Max: 1, Doc: "Part that is kept."})
	memory = Global(Size{Key: "node.memory", Default: 256 << 20, Min: 1 << 20, Doc: "Bytes for tasks."})
	spread = Global(GradualOf(Int{
		Key: "matching.spreadRoutingBatchSize", Max: 1000, Unit: "partitions", Doc: "Partitions of a queue that lie on different nodes; 0 = off.",
	}))
	rps = PerNamespace(Int{
		Key: "matching.namespaceRPS", Default: 1200, Min: 1, Unit: "requests per second",
		Doc: "Requests a node takes.", Formerly: []string{"matching.rps"},
	})
	writes = PerQueue(Int{Key: "matching.numTaskqueueWritePartitions", Default: 4, Min: 1, Max: 1000, Doc: "Partitions written to."})
	wait   = PerQueue(Duration{
		Key: "matching.longPollExpirationInterval", Default: time.Minute, Min: time.Second, Max: 5 * time.Minute, Doc: "Longest poll.",
	})
	polls = PerQueue(Enum[order]{
		Key: "matching.pollOrder", Default: newest, Doc: "Who is served first.", Effect: OnReload,
		Choices: []Choice[order]{{"newest", newest, "Lets surplus workers idle."}, {"oldest", oldest, "Shares the work."}},
	})
	fair    = PerQueue(GradualOf(Bool{Key: "matching.fairness", Doc: "Fair backlog."}))
	counter = PerQueue(Struct[sketch]{
		Key: "matching.counter", Doc: "Sketch of keys.",
		Fields: []Field[sketch]{
			FieldOf(Int{Key: "width", Default: 100, Min: 1, Max: 10_000, Doc: "Columns."}, func(s *sketch) *int { return &s.Width }),
			FieldOf(Duration{Key: "decay", Default: time.Minute, Doc: "Half-life."}, func(s *sketch) *time.Duration { return &s.Decay }),
		},
		Check: func(s sketch) error {
			if s.Width > 1000 && s.Decay == 0 {
				return errors.New("a width above 1000 needs a decay")
			}
			return nil
		},
	})
	ups = PerQueue(List[step]{
		Key: "matching.scaleUps", Doc: "When to scale up.", MaxItems: 3,
		Of: Struct[step]{Fields: []Field[step]{
			FieldOf(Duration{Key: "window", Default: time.Second, Doc: "How long."}, func(s *step) *time.Duration { return &s.Window }),
			FieldOf(Float{Key: "rate", Doc: "How much."}, func(s *step) *float64 { return &s.Rate }),
		}},
	})
	tags    = PerQueue(List[string]{Key: "matching.tags", Default: []string{"a"}, Of: String{}, Doc: "Tags."})
	weights = PerQueue(Map[int]{Key: "matching.weights", Of: Int{Max: 10}, Doc: "Weights by key."})
	gone    = Removed{Key: "matching.idBlock", Advice: "ids need no blocks any more, drop the entry."}
)

func fixture() []Declared {
	return []Declared{debug, banner, share, memory, spread, rps, writes, wait, polls, fair, counter, ups, tags, weights, gone}
}

func registry(tb testing.TB) *Registry {
	tb.Helper()
	r, err := NewRegistry(fixture()...)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// load parses a file that has to be right.
func load(tb testing.TB, content string) *Snapshot {
	tb.Helper()
	s, err := registry(tb).Parse([]byte(content))
	if err != nil {
		tb.Fatalf("%v\nin\n%s", err, content)
	}
	return s
}

func queueOf(ns, name string, typ partition.TaskType) partition.Queue {
	return partition.Queue{Namespace: ns, Name: name, Type: typ}
}
