package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// TestBench runs each mode for a moment, on a server of its own and on a given
// one, and looks at which figures there are.
func TestBench(t *testing.T) {
	ctx := limit(t, 2*time.Minute)
	n := startNode(ctx, t)
	const everywhere = "adds_per_s add_p50_us add_p99_us client_cpu_us_per_task calls_per_task "
	const ofServer = "server_cpu_us_per_task server_max_rss_mb commits_per_task records_per_task "
	const through = "tasks_per_s lat_p50_us lat_p99_us "
	for args, want := range map[string]string{
		"--mode flow --tasks 500":                            everywhere + ofServer + through,
		"--mode flow --tasks 500 --outstanding 8":            everywhere + ofServer + through,
		"--mode flow --tasks 500 --durability hand-off":      everywhere + ofServer + through,
		"--mode backlog --tasks 500":                         everywhere + ofServer + "drain_per_s ",
		"--mode latency --tasks 100 --rate 500":              everywhere + ofServer + through,
		"--mode backlog --tasks 500 --address " + n.GRPCAddr: everywhere + "drain_per_s ",
	} {
		t.Run(args, func(t *testing.T) {
			out := n.output(ctx, append([]string{"bench", "-o", "json"}, strings.Fields(args)...)...)
			var figures map[string]*float64
			if err := json.Unmarshal([]byte(out), &figures); err != nil {
				t.Fatalf("%q: %v", out, err)
			}
			if *figures["lost"] != 0 || *figures["dups"] != 0 || *figures["received"] < 100 {
				t.Errorf("received %v, lost %v, dups %v", *figures["received"], *figures["lost"], *figures["dups"])
			}
			for name, value := range figures {
				wanted := strings.Contains(want, name+" ") || name == "received" || name == "lost" || name == "dups"
				if wanted != (value != nil) {
					t.Errorf("%s is there: %v, want %v", name, value != nil, wanted)
				}
			}
			if records := figures["records_per_task"]; records != nil && (*records < 0.1 || *records > 5) {
				t.Errorf("%v records per task: the metrics are misread", *records)
			}
		})
	}
}
