package main

import (
	"bytes"
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// realFiles returns files of this machine: 2,000 of them, all when the tests
// may take their time.
func realFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir("/usr/share", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !long() && len(files) == 2000:
			return filepath.SkipAll
		case entry.Type().IsRegular() && !strings.ContainsAny(path, "\n\\"): // sha256sum writes such names otherwise
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) < 100 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	return files
}

// plainSums is what sha256sum says of the files, sorted.
func plainSums(ctx context.Context, t *testing.T, files []string) []string {
	t.Helper()
	var sums []string
	for chunk := range slices.Chunk(files, 500) {
		out, err := exec.CommandContext(ctx, "sha256sum", chunk...).Output() //nolint:gosec // names of files are its arguments
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")...)
	}
	slices.Sort(sums)
	return sums
}

// TestTour sends real files through: it adds a task for each, kills the server,
// and has a worker run sha256sum for each. In the second half the server is
// killed again under the worker. What comes out has to be what sha256sum says of
// the files: exactly, or with duplicates once the server was killed under the
// worker.
func TestTour(t *testing.T) {
	files := realFiles(t)
	d := 3 * time.Minute
	if long() {
		d = 2 * time.Hour
	}
	ctx := limit(t, d)
	sums := plainSums(ctx, t, files)
	for name, killed := range map[string]bool{"killed between": false, "killed in the middle": true} {
		t.Run(name, func(t *testing.T) {
			files, want := files, sums
			if !killed && !long() { // what holds without a kill shows with fewer files too
				files = files[:500]
				want = plainSums(ctx, t, files)
			}
			n := startNode(ctx, t)
			n.addLines(ctx, files)
			n.restart(ctx)
			got := n.sums(ctx, len(files), killed)
			slices.Sort(got)
			once := slices.Compact(slices.Clone(got))
			if !slices.Equal(once, want) {
				t.Fatalf("%d sums came out, %d without duplicates, %d expected", len(got), len(once), len(want))
			}
			dups := len(got) - len(once)
			if dups > 0 && !killed {
				t.Errorf("%d duplicates although the server ran throughout", dups)
			}
			t.Logf("%d files, %d duplicates", len(files), dups)
		})
	}
}

// addLines adds a task for each line.
func (n *node) addLines(ctx context.Context, lines []string) {
	n.t.Helper()
	cmd := n.command(ctx, "task", "add", "--queue", "files", "--lines", "-o", "json")
	cmd.Stdin = strings.NewReader(strings.Join(lines, "\n") + "\n")
	out, err := cmd.Output()
	var told struct {
		Added      int `json:"added"`
		ResumeLine int `json:"resume_line"`
	}
	decode(n.t, string(out), &told)
	if err != nil || told.Added != len(lines) || told.ResumeLine != len(lines)+1 {
		n.t.Fatalf("adding %d lines gives %v, %s", len(lines), err, out)
	}
}

// sums works on the tasks and returns what comes out. With killed the server is
// killed, and started again, once half of it came.
func (n *node) sums(ctx context.Context, tasks int, killed bool) []string {
	n.t.Helper()
	half := make(chan struct{})
	out := &counted{wanted: tasks / 2, reached: half}
	var stderr bytes.Buffer
	cmd := n.command(ctx, "work", "--queue", "files", "--concurrency", "4", "--lease", "2s", "--idle-exit", "2s", "--", "sha256sum", "{}")
	cmd.Stdout, cmd.Stderr = out, &stderr
	if err := cmd.Start(); err != nil {
		n.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var err error
	select {
	case <-half:
		if killed {
			n.restart(ctx)
		}
		err = <-ended
	case err = <-ended:
	}
	if err != nil {
		n.t.Fatalf("the worker ended with %v:\n%s", err, stderr.String())
	}
	return strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
}

// counted gathers lines and tells when so many have come.
type counted struct {
	bytes.Buffer

	wanted  int
	reached chan struct{}
	once    sync.Once
	lines   int
}

// Write never fails.
func (c *counted) Write(p []byte) (int, error) {
	c.lines += bytes.Count(p, []byte("\n"))
	if c.lines >= c.wanted {
		c.once.Do(func() { close(c.reached) })
	}
	return c.Buffer.Write(p)
}
