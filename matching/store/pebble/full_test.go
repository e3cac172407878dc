package pebble

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// fullDisk is a disk with no room for tables while it is full. Tries counts the
// tables that were begun meanwhile.
type fullDisk struct {
	full  atomic.Bool
	tries atomic.Int64
}

func (d *fullDisk) over(fs vfs.FS) vfs.FS {
	return inject(fs, func(op errorfs.Op) error {
		if !d.full.Load() || !strings.HasSuffix(op.Path, ".sst") || op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if op.Kind == errorfs.OpCreate {
			d.tries.Add(1)
		}
		return syscall.ENOSPC
	})
}

// crashedStore returns a disk with a store whose log was not flushed, as a process
// leaves it that ended on a full disk.
func crashedStore(t *testing.T) *vfs.MemFS {
	t.Helper()
	fs := vfs.NewCrashableMem()
	s := open(t, testOptions(fs))
	p := queue.Partition(0)
	if _, err := s.Acquire(context.Background(), holder, []partition.ID{p}); err != nil {
		t.Fatal(err)
	}
	m := &row.Mutation{Partition: p, Epoch: 1, PutTasks: []row.Task{{Task: &task.Task{ID: task.MakeID(1, 1), Priority: 3}}}}
	if o := s.Commit(context.Background(), []*row.Mutation{m})[0]; o.Result != store.Stored {
		t.Fatal(o)
	}
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	closeStore(t, s)
	return crashed
}

// TestOpenOnAFullDisk ends with an error instead of trying for ever, and loses
// nothing: with room again the tasks are there.
func TestOpenOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var disk fullDisk
		o := testOptions(disk.over(crashedStore(t)))
		disk.full.Store(true)
		began := time.Now()
		_, err := Open(o)
		if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), o.Dir) || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("opening on a full disk: error %v", err)
		}
		if took := time.Since(began); took > 10*time.Second || disk.tries.Load() != openTries {
			t.Errorf("it took %s and %d tries, want less than 10 s and %d", took, disk.tries.Load(), openTries)
		}
		if _, err := Open(o); !errors.Is(err, ErrLocked) {
			t.Errorf("opening once more meanwhile: error %v", err)
		}
		time.Sleep(time.Minute)
		if n := disk.tries.Load(); n < 50 || n > 70 {
			t.Errorf("%d tries within a minute, want about one a second", n)
		}
		disk.full.Store(false)
		time.Sleep(2 * longRest) // what was left behind ends by itself
		synctest.Wait()
		s := open(t, o)
		defer closeStore(t, s)
		page, err := s.Scan(context.Background(), queue.Partition(0), row.Scan{Kind: row.Tasks, Priority: 3, Items: 10})
		if err != nil || len(page.Tasks) != 1 {
			t.Errorf("%d tasks, error %v: want the one that was stored", len(page.Tasks), err)
		}
	})
}

// TestCreateOnAFullDisk: a store that has no room at its birth is no store, and
// closing it does not hang.
func TestCreateOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var disk fullDisk
		o := testOptions(disk.over(vfs.NewMem()))
		disk.full.Store(true)
		if _, err := Open(o); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("creating on a full disk: error %v", err)
		}
		disk.full.Store(false)
		closeStore(t, open(t, o))
	})
}

// TestFlushesRest: a store that is open goes on while its flushes fail, with rests
// between the tries.
func TestFlushesRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var disk fullDisk
		s := open(t, testOptions(disk.over(vfs.NewMem())))
		defer closeStore(t, s)
		p := queue.Partition(0)
		if _, err := s.Acquire(context.Background(), holder, []partition.ID{p}); err != nil {
			t.Fatal(err)
		}
		disk.full.Store(true)
		flushed, err := s.db.AsyncFlush()
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if n := disk.tries.Load(); n < 50 || n > 70 {
			t.Errorf("%d tries within a minute, want about one a second", n)
		}
		if err := s.Healthy(); err != nil {
			t.Errorf("commits still work, but: %v", err)
		}
		disk.full.Store(false)
		<-flushed
		if n := s.disk.background.failures.Load(); n != 0 {
			t.Errorf("%d failures in a row after a success", n)
		}
	})
}

func TestStrangeDirectories(t *testing.T) {
	for name, c := range map[string]struct {
		files   []string
		refused string
	}{
		"empty":                  {nil, ""},
		"root of a file system":  {[]string{"lost+found"}, ""},
		"creation broken off":    {[]string{"LOCK", "000002.log", "MANIFEST-000001", "OPTIONS-000003", "000004.dbtmp"}, ""},
		"somebody's files":       {[]string{"LOCK", "letter.txt"}, "letter.txt"},
		"somebody's logs":        {[]string{"server.log"}, "server.log"},
		"database and something": {[]string{"marker.manifest.000001.MANIFEST-000001", "MANIFEST-000001", "notes"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			fs := vfs.NewMem()
			if err := fs.MkdirAll("d", 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range c.files {
				f, err := fs.Create("d/"+file, vfs.WriteCategoryUnspecified)
				if err != nil {
					t.Fatal(err)
				}
				_ = f.Close()
			}
			err := checkDir(fs, "d")
			if c.refused == "" && err != nil {
				t.Errorf("refused: %v", err)
			}
			if c.refused != "" && (!errors.Is(err, ErrNotAStore) || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("error %v, want ErrNotAStore with the name %s", err, c.refused)
			}
		})
	}
	if err := checkDir(vfs.NewMem(), "missing"); err != nil {
		t.Errorf("a directory to be made: %v", err)
	}
}
