package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/store/postgres/pgtest"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// laneLoad is what a commit lane does with one partition: it adds, one commit
// after the other, and after an unknown outcome takes the partition again.
type laneLoad struct {
	s      *Store
	p      partition.ID
	holder task.Holder

	epoch    task.Epoch
	seq      uint64
	stored   []task.ID // answered stored
	maybe    []task.ID // answered unknown
	absent   []task.ID // answered not stored or lost
	unknowns int
}

// take acquires until it works.
func (l *laneLoad) take(ctx context.Context) {
	for ctx.Err() == nil {
		if taken, err := l.s.Acquire(ctx, l.holder, []partition.ID{l.p}); err == nil && taken[0].Err == nil {
			l.epoch = taken[0].Epoch
			return
		}
	}
}

// add makes one commit of one task.
func (l *laneLoad) add(ctx context.Context) store.Result {
	l.seq++
	m := put(l.p, l.epoch, l.seq)
	id := m.PutTasks[0].Task.ID
	o := l.s.Commit(ctx, []*row.Mutation{m})[0]
	switch o.Result {
	case store.Stored:
		l.stored = append(l.stored, id)
	case store.Unknown:
		l.unknowns++
		l.maybe = append(l.maybe, id)
		l.take(ctx)
	case store.LostEpoch:
		l.absent = append(l.absent, id)
		l.take(ctx)
	case store.NotStored:
		l.absent = append(l.absent, id)
	}
	return o.Result
}

// check compares what was answered with what is there.
func (l *laneLoad) check(t *testing.T) {
	t.Helper()
	for i, found := range has(t, l.s, l.p, l.stored...) {
		if !found {
			t.Errorf("task %s was answered stored and is not there", l.stored[i])
		}
	}
	for i, found := range has(t, l.s, l.p, l.absent...) {
		if found {
			t.Errorf("task %s was answered not stored and is there", l.absent[i])
		}
	}
}

// TestRestartUnderLoad stops the server in every way while lanes commit. What
// was answered is true, and the lanes go on without anybody's help.
func TestRestartUnderLoad(t *testing.T) {
	own := pgtest.New()
	defer closeServer(t, own)
	o := inNewSchema(testOptions(own.Database(t)))
	migrate(t, o)
	s := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var progress atomic.Int64
	done := make(chan struct{})
	var lanes sync.WaitGroup
	loads := make([]*laneLoad, 3)
	for i := range loads {
		l := &laneLoad{s: s, p: orders.Partition(int32(i)), holder: anna}
		loads[i] = l
		lanes.Go(func() {
			for l.take(ctx); ctx.Err() == nil; {
				select {
				case <-done:
					return
				default:
				}
				if l.add(ctx) == store.Stored {
					progress.Add(1)
				}
			}
		})
	}
	advance := func() {
		for from := progress.Load(); progress.Load() < from+100 && ctx.Err() == nil; {
			tick := time.NewTimer(time.Millisecond)
			<-tick.C
		}
	}
	for _, how := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGINT} {
		advance()
		own.Stop(t, how)
		own.Start(t)
	}
	advance()
	close(done)
	lanes.Wait()
	if ctx.Err() != nil {
		t.Fatal("the lanes did not recover")
	}
	unknowns := 0
	for _, l := range loads {
		l.check(t)
		unknowns += l.unknowns
	}
	t.Logf("%d commits stored, %d of unknown outcome", progress.Load(), unknowns)
}

// TestReadAfterConnectionsBroke ends every connection while it rests: the next
// read takes another one instead of failing.
func TestReadAfterConnectionsBroke(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	s := open(t, o)
	l := &laneLoad{s: s, p: orders.Partition(0), holder: anna}
	l.take(t.Context())
	if l.add(t.Context()) != store.Stored {
		t.Fatal("nothing is stored")
	}
	killer, err := pgx.Connect(t.Context(), o.DSN)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		l.check(t)
		const all = `SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'`
		var ended int
		if err := killer.QueryRow(t.Context(), all).Scan(&ended); err != nil || ended == 0 {
			t.Fatalf("%d connections ended: %v", ended, err)
		}
	}
	if err := killer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestFenceUnderStress has two nodes take one partition from each other while
// they commit and their connections are broken: no row of an earlier epoch ever
// appears after a take, and none that was answered stored is missing.
func TestFenceUnderStress(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	p := orders.Partition(0)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	var nodes sync.WaitGroup
	loads := make([]*laneLoad, 2)
	violations := make([][]task.ID, len(loads))
	for i, holder := range []task.Holder{anna, bert} {
		l := &laneLoad{s: open(t, o), p: p, holder: holder}
		loads[i] = l
		nodes.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				if n%10 == 0 {
					violations[i] = append(violations[i], l.takeAndLookTwice(ctx)...)
				}
				l.add(ctx)
			}
		})
	}
	killer, err := pgx.Connect(context.Background(), o.DSN)
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for tick := time.NewTicker(10 * time.Millisecond); ctx.Err() == nil; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
		}
		const victim = `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
 WHERE datname = current_database() AND pid <> pg_backend_pid() AND query LIKE '%fence%' ORDER BY random() LIMIT 1) v`
		var n int
		if err := killer.QueryRow(context.Background(), victim).Scan(&n); err != nil {
			t.Fatal(err)
		}
		kills += n
	}
	nodes.Wait()
	if err := killer.Close(context.Background()); err != nil {
		t.Error(err)
	}
	taken := acquire(t, open(t, o), task.Holder{Node: "judge"}, p)[0]
	stored, unknown := 0, 0
	for i, l := range loads {
		for _, id := range violations[i] {
			t.Errorf("task %s of an earlier epoch appeared after the take", id)
		}
		l.check(t)
		stored, unknown = stored+len(l.stored), unknown+len(l.maybe)
	}
	t.Logf("%d takes, %d commits stored, %d unknown, %d connections ended", taken.Epoch, stored, unknown, kills)
	if stored == 0 || taken.Epoch < 10 || kills == 0 {
		t.Error("too little happened to show anything")
	}
}

// takeAndLookTwice takes the partition and returns the rows of earlier epochs
// that were not there at the first look and are at the second.
func (l *laneLoad) takeAndLookTwice(ctx context.Context) []task.ID {
	l.take(ctx)
	epoch := l.epoch // adding may take again
	all := row.Scan{Kind: row.Tasks, Priority: 3, Items: 1 << 20}
	first, firstErr := l.s.Scan(ctx, l.p, all)
	for range 3 {
		l.add(ctx)
	}
	second, secondErr := l.s.Scan(ctx, l.p, all)
	if firstErr != nil || secondErr != nil {
		return nil
	}
	seen := map[task.ID]bool{}
	for _, r := range first.Tasks {
		seen[r.Task.ID] = true
	}
	var late []task.ID
	for _, r := range second.Tasks {
		if id := r.Task.ID; id.Epoch() < epoch && !seen[id] {
			late = append(late, id)
		}
	}
	return late
}
