package pebble

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{}, {Dir: "d", CacheBytes: -1}, {Dir: "d", MemTableBytes: -1}} {
		o.FS = vfs.NewMem()
		if s, err := Open(o); err == nil {
			t.Errorf("Open(%+v) accepts", o)
			closeStore(t, s)
		}
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	o := testOptions(vfs.NewMem())
	s := open(t, o)
	newer := appendFormat(nil, format{version: formatVersion + 1, id: s.id})
	if err := s.db.Set([]byte{kindFormat}, newer, pebbledb.Sync); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	_, err := Open(o)
	if !errors.Is(err, ErrNewerFormat) || !strings.Contains(err.Error(), o.Dir) || !strings.Contains(err.Error(), "format is 2") {
		t.Errorf("opening a newer store: error %v", err)
	}
}

func TestAnotherDatabaseIsRefused(t *testing.T) {
	o := testOptions(vfs.NewMem())
	db, err := pebbledb.Open(o.Dir, &pebbledb.Options{FS: o.FS, Logger: newLogger(&o)})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Set([]byte("k"), []byte("v"), pebbledb.Sync), db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(o); !errors.Is(err, ErrNotAStore) {
		t.Errorf("opening another program's database: error %v", err)
	}
}

// TestHealthy holds a sync back and looks at the store meanwhile.
func TestHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var holding atomic.Bool
		o := testOptions(inject(vfs.NewMem(), func(op errorfs.Op) error {
			if holding.Load() && isLog(op) && isSync(op) {
				<-hold
			}
			return nil
		}))
		o.CommitDeadline = func() time.Duration { return 3 * time.Second }
		s := open(t, o)
		p := queue.Partition(0)
		if _, err := s.Acquire(context.Background(), holder, []partition.ID{p}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		holding.Store(true)
		var outcome store.Outcome
		done := make(chan struct{})
		go func() {
			defer close(done)
			outcome = s.Commit(context.Background(), []*row.Mutation{{Partition: p, Epoch: 1, PutTasks: []row.Task{{Task: &task.Task{ID: 1, Priority: 3}}}}})[0]
		}()
		time.Sleep(3*time.Second - 1)
		synctest.Wait()
		if err := s.Healthy(); err != nil {
			t.Errorf("before the deadline: %v", err)
		}
		time.Sleep(time.Minute)
		if err := s.Healthy(); err == nil || !strings.Contains(err.Error(), "deadline is 3s") {
			t.Errorf("past the deadline: %v", err)
		}
		if outcome.Result != 0 {
			t.Errorf("the commit was answered %v before it was durable", outcome)
		}
		close(hold)
		<-done
		if err := s.Healthy(); err != nil || outcome.Result != store.Stored {
			t.Errorf("afterwards: %v, the commit is %v", err, outcome)
		}
		closeStore(t, s)
	})
}

func TestErrorsAreLoggedOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := newLogger(&Options{Logger: slog.New(slog.NewJSONHandler(&out, nil))})
		for i := range 25 { // 0.0 s .. 2.4 s
			l.Errorf("error %d", i)
			l.Infof("chatter")
			time.Sleep(100 * time.Millisecond)
		}
		type line struct {
			Msg        string `json:"msg"`
			Suppressed int    `json:"suppressed"`
		}
		texts := strings.Split(strings.TrimSpace(out.String()), "\n")
		got := make([]line, 0, len(texts))
		for _, text := range texts {
			var one line
			if err := json.Unmarshal([]byte(text), &one); err != nil {
				t.Fatal(err)
			}
			got = append(got, one)
		}
		want := []line{{"error 0", 0}, {"error 10", 9}, {"error 20", 9}}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("logged %v, want %v", got, want)
		}
	})
}

// TestReleasedPartitionsAreForgotten bounds what is kept in memory.
func TestReleasedPartitionsAreForgotten(t *testing.T) {
	s := open(t, testOptions(vfs.NewMem()))
	defer closeStore(t, s)
	for n := range int32(100) {
		p := queue.Partition(n)
		if _, err := s.Acquire(context.Background(), holder, []partition.ID{p}); err != nil {
			t.Fatal(err)
		}
		m := &row.Mutation{Partition: p, Epoch: 1, Meta: &row.Meta{Released: true}}
		if o := s.Commit(context.Background(), []*row.Mutation{m})[0]; o.Result != store.Stored {
			t.Fatal(o)
		}
	}
	if n := len(s.mu.held); n != 0 {
		t.Errorf("%d partitions that nobody holds are remembered", n)
	}
}

// TestWritesToAClosedStore are refused: they are no reason to end the process.
func TestWritesToAClosedStore(t *testing.T) {
	s := open(t, testOptions(vfs.NewMem()))
	closeStore(t, s)
	p := queue.Partition(0)
	if o := s.Commit(context.Background(), []*row.Mutation{{Partition: p, Epoch: 1}})[0]; o.Result != store.NotStored || !errors.Is(o.Err, ErrClosed) {
		t.Errorf("commit = %v, %v", o.Result, o.Err)
	}
	if _, err := s.Acquire(context.Background(), holder, []partition.ID{p}); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire: error %v", err)
	}
	if _, err := s.PutSettings(context.Background(), p.Queue, []byte("x"), 0); !errors.Is(err, ErrClosed) {
		t.Errorf("settings: error %v", err)
	}
}
