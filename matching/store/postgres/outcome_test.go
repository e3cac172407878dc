package postgres

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/postgres/pgtest"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

type unsent struct{ error }

func (unsent) SafeToRetry() bool { return true }

func TestResultOf(t *testing.T) {
	said := func(severity, code string) error {
		return &pgconn.PgError{Severity: "TRANSLATED", SeverityUnlocalized: severity, Code: code}
	}
	for _, tt := range []struct {
		err  error
		want store.Result
	}{
		{nil, store.Stored},
		{unsent{errors.New("no route")}, store.NotStored},
		{said("ERROR", "57014"), store.NotStored}, // cancelled, or past statement_timeout
		{said("ERROR", "55P03"), store.NotStored}, // past lock_timeout
		{said("ERROR", "23505"), store.NotStored},
		{said("ERROR", "40P01"), store.NotStored},
		{said("ERROR", "53100"), store.NotStored},
		{said("FATAL", "57P01"), store.Unknown}, // terminated, perhaps after its commit
		{said("FATAL", "57P02"), store.Unknown},
		{said("PANIC", "XX000"), store.Unknown},
		{io.ErrUnexpectedEOF, store.Unknown},
		{context.DeadlineExceeded, store.Unknown},
		{errors.Join(said("ERROR", "57014"), ErrUnconfirmed), store.Unknown},
	} {
		if got := resultOf(tt.err); got != tt.want {
			t.Errorf("resultOf(%v) = %v, want %v", tt.err, got, tt.want)
		}
	}
}

// TestOneBadRow: a mutation that no table takes does not hold up the others.
func TestOneBadRow(t *testing.T) {
	s := newStore(t)
	ps := []partition.ID{orders.Partition(0), orders.Partition(1), orders.Partition(2)}
	acquire(t, s, anna, ps...)
	mustStore(t, s, put(ps[1], 1, 7))
	outcomes := s.Commit(context.Background(), []*row.Mutation{put(ps[0], 1, 1), put(ps[1], 1, 7), put(ps[2], 1, 1)})
	for i, want := range []store.Result{store.Stored, store.NotStored, store.Stored} {
		if outcomes[i].Result != want {
			t.Errorf("mutation %d = %v, %v, want %v", i, outcomes[i].Result, outcomes[i].Err, want)
		}
	}
	if got := has(t, s, ps[2], task.MakeID(1, 1)); !got[0] {
		t.Error("a mutation beside a bad one is not there")
	}
}

// TestBigCommit is more than one statement holds.
func TestBigCommit(t *testing.T) {
	s := newStore(t)
	const n = 5
	ms := make([]*row.Mutation, 0, n)
	for i := range int32(n) {
		p := orders.Partition(i)
		acquire(t, s, anna, p)
		m := put(p, 1, 1)
		m.PutTasks[0].Task.Payload = make([]byte, maxStatementBytes/2-1<<10)
		ms = append(ms, m)
	}
	for i, o := range s.Commit(context.Background(), ms) {
		if o.Result != store.Stored {
			t.Errorf("mutation %d = %v, %v", i, o.Result, o.Err)
		}
		page, err := s.Scan(context.Background(), ms[i].Partition, row.Scan{Kind: row.Tasks, Priority: 3, Items: 10, Bytes: 1})
		if err != nil || len(page.Tasks) != 1 || len(page.Tasks[0].Task.Payload) != len(ms[i].PutTasks[0].Task.Payload) {
			t.Errorf("scan of mutation %d = %d tasks, %v", i, len(page.Tasks), err)
		}
	}
}

// TestBigRowsAreNotAllSent: the server ends a page where its bytes are reached.
func TestBigRowsAreNotAllSent(t *testing.T) {
	s := newStore(t)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	m := put(p, 1, 1, 2, 3, 4, 5, 6, 7, 8)
	for _, r := range m.PutTasks {
		r.Task.Payload = make([]byte, 1<<20)
	}
	mustStore(t, s, m)
	k := s.keys.get(p)
	st := s.scanStatement(k.key, row.Scan{Kind: row.Tasks, Priority: 3, Items: 100, Bytes: 3 << 20})
	sent := 0
	if err := s.read(context.Background(), st, func(pgx.Rows) error { sent++; return nil }); err != nil || sent != 4 {
		t.Errorf("for 3 MiB the server sent %d rows of 1 MiB, %v, want 4: their overhead counts only here", sent, err)
	}
}

// TestLocked: what waits for a lock when its caller leaves is surely not stored.
func TestLocked(t *testing.T) {
	s := newStore(t)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	tx, err := s.rest.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(context.Background(), inSchema(s.o.Schema, "SELECT 1 FROM {s}.partition FOR UPDATE")); err != nil {
		t.Fatal(err)
	}
	reason := errors.New("the caller left")
	ctx, leave := context.WithCancelCause(context.Background())
	done := make(chan store.Outcome, 1)
	go func() { done <- s.Commit(ctx, []*row.Mutation{put(p, 1, 1)})[0] }()
	const waiting = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
	for waits := false; !waits; {
		if err := s.rest.QueryRow(context.Background(), waiting).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	leave(reason)
	if o := <-done; o.Result != store.NotStored || !errors.Is(o.Err, reason) {
		t.Errorf("commit of a caller that left = %v, %v, want not stored", o.Result, o.Err)
	}
	if err := tx.Rollback(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := has(t, s, p, task.MakeID(1, 1)); got[0] {
		t.Error("it was stored after all")
	}
	mustStore(t, s, put(p, 1, 1)) // the late cancel does not meet the next statement
}

// TestUnconfirmed: a server that waits for a standby which never comes has the
// row, and says so when the wait is cut short. It may be gone after a fail-over.
func TestUnconfirmed(t *testing.T) {
	alone := pgtest.New()
	defer closeServer(t, alone)
	o := inNewSchema(testOptions(alone.Database(t)))
	migrate(t, o)
	s := open(t, o)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	alone.Exec(t, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
	var last store.Outcome
	for seq := uint64(1); seq < 100 && last.Result != store.Unknown; seq++ { // until the backend has read its settings again
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		last = s.Commit(ctx, []*row.Mutation{put(p, 1, seq)})[0]
		cancel()
	}
	if last.Result != store.Unknown || !errors.Is(last.Err, ErrUnconfirmed) {
		t.Errorf("commit without its standby = %v, %v, want unknown", last.Result, last.Err)
	}
	alone.Exec(t, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
}

// TestPaused: a server that answers nothing costs a call its deadline and a
// moment, the outcome is unknown, and meanwhile the store is not healthy.
func TestPaused(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	o.CommitDeadline = 50 * time.Millisecond
	s := open(t, o)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	conn, err := s.connect(context.Background(), s.commits)
	if err != nil {
		t.Fatal(err)
	}
	backend := int(conn.Conn().PgConn().PID())
	conn.Release()
	if err := syscall.Kill(backend, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	began := time.Now()
	done := make(chan store.Outcome)
	go func() { done <- s.Commit(ctx, []*row.Mutation{put(p, 1, 1)})[0] }()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var answer store.Outcome
	for red := false; answer.Result == 0; red = red || s.Healthy() != nil {
		select {
		case answer = <-done:
			if !red {
				t.Error("healthy while a commit hangs")
			}
		case <-tick.C:
		}
	}
	if most := 3*cancelGrace + time.Second; time.Since(began) > most {
		t.Errorf("the answer took %s, want at most %s", time.Since(began), most)
	}
	if answer.Result != store.Unknown || !errors.Is(answer.Err, context.DeadlineExceeded) {
		t.Errorf("commit to a server that hangs = %v, %v, want unknown", answer.Result, answer.Err)
	}
	if err := s.Healthy(); err != nil {
		t.Errorf("healthy afterwards: %v", err)
	}
	if err := syscall.Kill(backend, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	epoch := acquire(t, s, anna, p)[0].Epoch
	found := has(t, s, p, task.MakeID(1, 1))
	mustStore(t, s, put(p, epoch, 1))
	if again := has(t, s, p, task.MakeID(1, 1)); again[0] != found[0] {
		t.Error("a row of an earlier epoch came or went after the take")
	}
}

func closeServer(tb testing.TB, s *pgtest.Server) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Error(err)
	}
}

// TestWentBack: an epoch below the one that was taken is an alarm.
func TestWentBack(t *testing.T) {
	for name, back := range map[string]string{
		"epoch": `UPDATE {s}.partition SET epoch = 1`, "row": `DELETE FROM {s}.partition`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			p := orders.Partition(0)
			acquire(t, s, anna, p)
			acquire(t, s, anna, p)
			if err := s.Healthy(); err != nil {
				t.Fatalf("healthy = %v", err)
			}
			if _, err := s.rest.Exec(context.Background(), inSchema(s.o.Schema, back)); err != nil {
				t.Fatal(err)
			}
			if o := result(s, put(p, 2, 1)); o.Result != store.LostEpoch || o.Err != nil {
				t.Errorf("commit = %v, %v, want lost epoch", o.Result, o.Err)
			}
			if err := s.Healthy(); !errors.Is(err, ErrWentBack) || !strings.Contains(err.Error(), "epoch 2") {
				t.Errorf("healthy = %v, want ErrWentBack", err)
			}
			if taken := acquire(t, s, anna, p); taken[0].Epoch != map[string]task.Epoch{"epoch": 2, "row": 1}[name] {
				t.Errorf("taken again with epoch %d", taken[0].Epoch)
			}
		})
	}
}

// TestMetadata comes back as it was written, from a take and from the catalogue.
func TestMetadata(t *testing.T) {
	s := newStore(t)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	want := row.Meta{Released: true, MayHold: true, Listed: true, Acks: [task.Priorities]task.ID{1, ^task.ID(0)}, Backlog: 1 << 40}
	mustStore(t, s, &row.Mutation{Partition: p, Epoch: 1, Meta: &want})
	if listed, err := s.List(context.Background(), partition.ID{}, 2); err != nil || len(listed) != 1 || listed[0].Meta != want {
		t.Errorf("list = %+v, %v, want %+v", listed, err, want)
	}
	if taken := acquire(t, s, bert, p)[0]; taken.Meta != want {
		t.Errorf("take = %+v, want %+v", taken.Meta, want)
	}
}

// TestHighestEpoch: a partition whose epochs are used up is refused, by itself.
func TestHighestEpoch(t *testing.T) {
	s := newStore(t)
	used, fresh := orders.Partition(0), orders.Partition(1)
	acquire(t, s, anna, used, fresh)
	if _, err := s.rest.Exec(context.Background(), inSchema(s.o.Schema, "UPDATE {s}.partition SET epoch = $1 WHERE number = 0"), int64(task.MaxEpoch)); err != nil {
		t.Fatal(err)
	}
	taken, err := s.Acquire(context.Background(), bert, []partition.ID{used, fresh})
	if err != nil || taken[0].Err == nil || taken[1].Epoch != 2 {
		t.Errorf("acquire = %+v, %v", taken, err)
	}
	if o := result(s, put(used, task.MaxEpoch, 1)); o.Result != store.Stored {
		t.Errorf("commit of its last holder = %v, %v", o.Result, o.Err)
	}
}

// TestManyPartitions: keys that were forgotten are asked for again.
func TestManyPartitions(t *testing.T) {
	s := newStore(t)
	s.keys = newKeyring(3)
	for n := range int32(10) {
		acquire(t, s, anna, orders.Partition(n))
	}
	ms := make([]*row.Mutation, 3)
	for round := range int32(3) {
		for i := range ms {
			ms[i] = put(orders.Partition(3*round+int32(i)), 1, 1)
		}
		acquireAgain := acquire(t, s, bert, ms[0].Partition, ms[1].Partition, ms[2].Partition)
		for i, a := range acquireAgain {
			ms[i].Epoch = a.Epoch
		}
		for i, o := range s.Commit(context.Background(), ms) {
			if o.Result != store.Stored {
				t.Errorf("mutation %d of round %d = %v, %v", i, round, o.Result, o.Err)
			}
		}
	}
	if n := len(s.keys.mu.byID); n > 3 {
		t.Errorf("%d keys are remembered, the limit is 3", n)
	}
}

func TestClosed(t *testing.T) {
	s := newStore(t)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	closeStore(t, s)
	if o := result(s, put(p, 1, 1)); o.Result != store.NotStored || !errors.Is(o.Err, ErrClosed) {
		t.Errorf("commit to a closed store = %v, %v", o.Result, o.Err)
	}
	if _, err := s.Get(context.Background(), p, []task.ID{1}); !errors.Is(err, ErrClosed) {
		t.Errorf("get from a closed store: %v", err)
	}
	if _, err := s.Acquire(context.Background(), anna, []partition.ID{p}); !errors.Is(err, ErrClosed) {
		t.Errorf("acquire of a closed store: %v", err)
	}
}
