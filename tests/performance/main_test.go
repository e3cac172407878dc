package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// measureInto measures the stand-in for taskring of that name in testdata.
func measureInto(t *testing.T, standIn, page string) error {
	t.Helper()
	return run(t.Context(), []string{"-taskring", filepath.Join("testdata", standIn), "-out", page, "-scale", "100"}, io.Discard)
}

func TestPageHoldsEveryRun(t *testing.T) {
	page := filepath.Join(t.TempDir(), "docs", "performance.md")
	if err := measureInto(t, "works", page); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"| flow, 1 outstanding | - | 12346 | - | 12.3 | - | - | - |",
		"| backlog, 64 outstanding | - | 1.50 | - | - | - | - |",
		"| latency, 1 outstanding, 200/s | - | 12346 | - | 12.3 | - | - | - |",
		"taskring bench --mode flow --tasks 5000 --payload 256 --producers 16 --workers 16 --outstanding 64 --durability durable -o json",
	} {
		if !strings.Contains(string(content), line+"\n") {
			t.Errorf("the page lacks the line %q:\n%s", line, content)
		}
	}
}

func TestMachineIsNamed(t *testing.T) {
	m := machine{cpu: "Example CPU", cores: 2, memory: "4 kB", kernel: "6.1", golang: "go1.26"}
	want := "Machine: Example CPU, 2 cores, 4 kB memory, Linux 6.1, go1.26.\n"
	if page := string(render(m, 3, nil)); !strings.Contains(page, want) {
		t.Errorf("the page lacks %q:\n%s", want, page)
	}
}

func TestWrongRunLeavesThePageAlone(t *testing.T) {
	for standIn, want := range map[string]string{
		"loses":   "of 1000 tasks 999 were received, 1 lost, 0 handed out twice",
		"fails":   "exit status 3: the disk is full",
		"mumbles": "not one JSON line",
		"forgets": "lacks received, lost or dups",
	} {
		t.Run(standIn, func(t *testing.T) {
			page := filepath.Join(t.TempDir(), "performance.md")
			if err := os.WriteFile(page, []byte("as it was"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := measureInto(t, standIn, page)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got error %v, want one that says %q", err, want)
			}
			if content, err := os.ReadFile(page); err != nil || string(content) != "as it was" {
				t.Errorf("the page is now %q (%v), want it left as it was", content, err)
			}
		})
	}
}

func TestMedians(t *testing.T) {
	figure := func(v float64) *float64 { return &v }
	m := medians([]figures{
		{AddsPerS: figure(30), TasksPerS: figure(1)},
		{AddsPerS: figure(10), TasksPerS: figure(2)},
		{AddsPerS: figure(20)},
	})
	if *m.AddsPerS != 20 || *m.TasksPerS != 1.5 || m.DrainPerS != nil {
		t.Errorf("got %v, %v, %v, want 20, 1.5 and none", *m.AddsPerS, *m.TasksPerS, m.DrainPerS)
	}
	if got := len(m.all()); got != 13 {
		t.Errorf("%d figures have medians, want 13", got)
	}
}
