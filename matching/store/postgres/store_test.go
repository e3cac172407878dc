package postgres

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/postgres/pgtest"
	"github.com/taskring/taskring/matching/store/storetest"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// pg is the server of all tests but those that spoil one.
var pg = pgtest.New()

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := pg.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}

// testOptions are production's.
func testOptions(dsn string) Options {
	return Options{DSN: dsn, Logger: slog.New(slog.DiscardHandler)}
}

var schemas atomic.Int64

// inNewSchema returns options for a store that is not there yet.
func inNewSchema(o Options) Options {
	o.Schema = fmt.Sprintf("Store %d", schemas.Add(1)) // a name that needs quotes
	return o
}

func migrate(tb testing.TB, o Options) {
	tb.Helper()
	if _, err := Migrate(context.Background(), o); err != nil {
		tb.Fatalf("%v\n%s", err, pg.Log())
	}
}

func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(context.Background(), o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { closeStore(tb, s) })
	return s
}

func closeStore(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Errorf("close: %v", err)
	}
}

// vacuumAll frees the room of all deleted rows, so that later rows take it.
func (s *Store) vacuumAll() error {
	names := make([]string, 0, tables)
	all := tableNames()
	for _, name := range append(all[:], "partition") {
		names = append(names, quoted(s.o.Schema)+"."+name)
	}
	_, err := s.rest.Exec(context.Background(), "VACUUM "+strings.Join(names, ", "))
	return err
}

// conformance runs the suite on stores with the given options.
func conformance(t *testing.T, o Options) {
	t.Helper()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		o := inNewSchema(o)
		migrate(t, o)
		s, err := Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		if o.Pooler { // connections are the pooler's business
			return storetest.Harness{Store: s}
		}
		return storetest.Harness{
			Store: s,
			Reopen: func() (storetest.Store, error) {
				if err := s.Close(); err != nil {
					return nil, err
				}
				again, err := Open(context.Background(), o)
				s = again
				return again, err
			},
			Compact: func() error { return s.vacuumAll() },
		}
	})
}

// stories bounds how many random stories are told; each is hundreds of
// statements.
func stories(t *testing.T, n int) {
	t.Helper()
	if os.Getenv("TASKRING_LONG") != "" {
		n *= 100
	}
	if err := flag.Set("rapid.checks", strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	stories(t, 10)
	conformance(t, testOptions(pg.Database(t)))
}

var (
	anna   = task.Holder{Node: "anna", RunID: "run-1", Address: "10.0.0.1:7233"}
	bert   = task.Holder{Node: "bert", RunID: "run-2", Address: "10.0.0.2:7233"}
	orders = partition.Queue{Namespace: "shop", Name: "orders", Type: partition.Activity}
)

// newStore opens a store of its own schema in a new database.
func newStore(tb testing.TB) *Store {
	tb.Helper()
	o := inNewSchema(testOptions(pg.Database(tb)))
	migrate(tb, o)
	return open(tb, o)
}

func acquire(tb testing.TB, s *Store, h task.Holder, ps ...partition.ID) []store.Acquired {
	tb.Helper()
	taken, err := s.Acquire(context.Background(), h, ps)
	if err != nil {
		tb.Fatal(err)
	}
	for _, a := range taken {
		if a.Err != nil {
			tb.Fatal(a.Err)
		}
	}
	return taken
}

// put adds the tasks with the given sequence numbers.
func put(p partition.ID, epoch task.Epoch, seqs ...uint64) *row.Mutation {
	m := &row.Mutation{Partition: p, Epoch: epoch}
	for _, seq := range seqs {
		m.PutTasks = append(m.PutTasks, row.Task{Task: &task.Task{ID: task.MakeID(epoch, seq), Priority: 3, Payload: []byte("payload")}})
	}
	return m
}

// result commits one mutation.
func result(s *Store, m *row.Mutation) store.Outcome {
	return s.Commit(context.Background(), []*row.Mutation{m})[0]
}

func mustStore(tb testing.TB, s *Store, m *row.Mutation) {
	tb.Helper()
	if o := result(s, m); o.Result != store.Stored {
		tb.Fatalf("commit = %v, %v", o.Result, o.Err)
	}
}

// has reports which of the ids are in the store.
func has(tb testing.TB, s *Store, p partition.ID, ids ...task.ID) []bool {
	tb.Helper()
	records, err := s.Get(context.Background(), p, ids)
	if err != nil {
		tb.Fatal(err)
	}
	found := make([]bool, len(records))
	for i, r := range records {
		found[i] = r.Found
	}
	return found
}
