package pebble

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// A process that ends is watched from outside: the test binary starts itself
// again with the directory and the job in these variables.
const (
	childDir = "TASKRING_STORE_TEST_DIR"
	childJob = "TASKRING_STORE_TEST_JOB"
)

// brokenDisks are jobs of a child that commits until the disk fails.
var brokenDisks = []struct {
	name   string
	breaks func(errorfs.Op) bool // which operations fail once the disk is broken
	words  string                // in what the process says at its end
	later  bool                  // commits go on until the next flush
}{
	{"log cannot be synced", func(op errorfs.Op) bool { return isLog(op) && isSync(op) }, "sync ", false},
	{"log cannot be written", func(op errorfs.Op) bool { return isLog(op) && op.Kind == errorfs.OpFileWrite }, "write ", false},
	{"nothing can be written", func(op errorfs.Op) bool { return op.Kind.ReadOrWrite() == errorfs.OpIsWrite }, ".log", false},
	{"log cannot be followed", func(op errorfs.Op) bool { return op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite }, "open ", true},
	{"directory cannot be synced", func(op errorfs.Op) bool { return strings.HasSuffix(op.Path, "/001") && isSync(op) }, "sync ", true},
	{"manifest cannot be synced", func(op errorfs.Op) bool { return strings.Contains(op.Path, "MANIFEST") && isSync(op) }, "MANIFEST", true},
}

func isLog(op errorfs.Op) bool { return strings.HasSuffix(op.Path, ".log") }

func isSync(op errorfs.Op) bool {
	return op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo
}

const (
	goodCommits = 20  // before the disk breaks
	someCommits = 200 // more than can go on after that
	lockJob     = "open the locked store"
)

// runChild does the job of a child process, if this is one.
func runChild() {
	dir, job := os.Getenv(childDir), os.Getenv(childJob)
	if dir == "" {
		return
	}
	if job == lockJob {
		_, err := Open(Options{Dir: dir})
		fmt.Println(errors.Is(err, ErrLocked), err)
		os.Exit(0)
	}
	for _, disk := range brokenDisks {
		if disk.name == job {
			commitUntilBroken(dir, disk.breaks)
		}
	}
	fmt.Println("survived")
	os.Exit(0)
}

// commitUntilBroken commits one task after the other, says which are stored, and
// flushes now and then. After some commits the disk breaks.
func commitUntilBroken(dir string, breaks func(errorfs.Op) bool) {
	var broken atomic.Bool
	fs := inject(vfs.Default, func(op errorfs.Op) error {
		if broken.Load() && breaks(op) {
			return errorfs.ErrInjected
		}
		return nil
	})
	o := Options{Dir: dir, FS: fs, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	o.OnFatal = func(reason string) { fmt.Println("fatal:", reason) }
	s, err := Open(o)
	if err != nil {
		panic(err)
	}
	p := queue.Partition(0)
	if _, err := s.Acquire(context.Background(), holder, []partition.ID{p}); err != nil {
		panic(err)
	}
	for i := range uint64(someCommits) {
		if i == goodCommits {
			broken.Store(true)
			fmt.Println("broken")
		}
		t := &task.Task{ID: task.MakeID(1, i+1), Priority: 3, Payload: make([]byte, 1000)}
		o := s.Commit(context.Background(), []*row.Mutation{{Partition: p, Epoch: 1, PutTasks: []row.Task{{Task: t}}}})[0]
		fmt.Println(o.Result, i+1)
		if i%10 == 9 {
			_ = s.db.Flush()
		}
	}
}

// child runs a job and returns what it printed, what it logged and its status.
func child(t *testing.T, dir, job string) (lines []string, log string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a child that hangs is a failure
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^$") //nolint:gosec // this test's own program
	cmd.Env = append(os.Environ(), childDir+"="+dir, childJob+"="+job)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n"), errs.String(), cmd.ProcessState.ExitCode()
}

// TestBrokenDiskEndsTheProcess breaks the disk under a process: it ends with the
// documented status and its reason, answers nothing it does not know, and what
// it answered is there after the next start.
func TestBrokenDiskEndsTheProcess(t *testing.T) {
	for _, disk := range brokenDisks {
		t.Run(disk.name, func(t *testing.T) {
			dir := t.TempDir()
			lines, log, status := child(t, dir, disk.name)
			if status != ExitStoreBroken {
				t.Fatalf("exit status %d, want %d; output %q, log:\n%s", status, ExitStoreBroken, lines, log)
			}
			last := lines[len(lines)-1]
			if !strings.HasPrefix(last, "fatal: ") || !strings.Contains(last, disk.words) {
				t.Errorf("the process says %q at its end, want a reason with %q", last, disk.words)
			}
			if !strings.Contains(log, "the store is broken") {
				t.Errorf("the log does not say that the store is broken:\n%s", log)
			}
			stored := answered(t, lines, !disk.later)
			compareStored(t, dir, stored)
		})
	}
}

// answered returns how many commits were answered "stored": none after the disk
// broke, if what broke is what every commit needs.
func answered(t *testing.T, lines []string, atOnce bool) int {
	t.Helper()
	stored, broken := 0, slices.Index(lines, "broken")
	for i, line := range lines {
		if !strings.HasPrefix(line, store.Stored.String()+" ") {
			continue
		}
		stored++
		if atOnce && i > broken {
			t.Errorf("%q was answered after the disk broke", line)
		}
	}
	if stored < goodCommits || broken < 0 {
		t.Errorf("%d commits were stored, want at least the %d before the disk broke: %q", stored, goodCommits, lines)
	}
	return stored
}

// compareStored opens the store and wants the first n tasks, and of others at
// most the one that was in flight.
func compareStored(t *testing.T, dir string, n int) {
	t.Helper()
	s := open(t, Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	defer closeStore(t, s)
	page, err := s.Scan(context.Background(), queue.Partition(0), row.Scan{Kind: row.Tasks, Priority: 3, Items: 1000})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Tasks) < n || len(page.Tasks) > n+1 {
		t.Fatalf("%d tasks are there, %d were answered stored", len(page.Tasks), n)
	}
	for i, r := range page.Tasks {
		if r.Task.ID != task.MakeID(1, uint64(i+1)) {
			t.Errorf("row %d is task %s", i, r.Task.ID)
		}
	}
}

// TestLockedDirectory opens a store that another one has: of this process, of
// another process, and of this process in memory.
func TestLockedDirectory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	defer closeStore(t, s)
	check := func(where string, locked bool, message string) {
		t.Helper()
		if !locked || !strings.Contains(message, dir) || !strings.Contains(message, "stop the server") {
			t.Errorf("%s: the error %q does not name the directory and what to do", where, message)
		}
	}
	_, err := Open(Options{Dir: dir, Logger: slog.New(slog.DiscardHandler)})
	check("same process", errors.Is(err, ErrLocked), fmt.Sprint(err))
	lines, _, _ := child(t, dir, lockJob)
	check("other process", strings.HasPrefix(lines[0], "true"), lines[0])

	fs := vfs.NewMem()
	inMemory := open(t, testOptions(fs))
	if _, err := Open(testOptions(fs)); !errors.Is(err, ErrLocked) {
		t.Errorf("in memory: error %v", err)
	}
	closeStore(t, inMemory)
	closeStore(t, open(t, testOptions(fs))) // free again
}
