package postgres

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
)

// plan explains a statement on a connection with the store's own settings.
func plan(t *testing.T, s *Store, how string, st statement) string {
	t.Helper()
	var lines []string
	// The values make it the plan of this call; what it is cached for is the same
	// under force_generic_plan.
	conn, err := s.commits.Acquire(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	rows, err := conn.Query(context.Background(), "EXPLAIN ("+how+") "+st.text, st.args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatalf("%v: %s", err, st.text)
	}
	return strings.Join(lines, "\n")
}

// everyPart is a mutation that has all parts.
func everyPart() *row.Mutation {
	one := task.Task{ID: task.MakeID(1, 1), Priority: 3}
	return &row.Mutation{
		Partition: orders.Partition(0), Epoch: 1,
		DeleteRanges:    []row.Range{{Priority: 3, From: 5, To: 9}},
		DeleteTasks:     []row.TaskKey{{Priority: 3, ID: 2}},
		DeleteScheduled: []row.DueKey{{Due: 1, ID: 2}},
		DeleteLeases:    []task.ID{2}, DeleteDead: []task.ID{2}, DeleteRequests: []string{"b"},
		PutTasks: []row.Task{{Task: &one}}, PutScheduled: []row.Task{{Task: &one, Due: 7}},
		PutLeases: []row.Lease{{ID: one.ID}}, PutDead: []row.DeadTask{{Task: &one}},
		PutRequests: []row.Request{{RequestID: "a", ID: one.ID}}, Meta: &row.Meta{},
	}
}

// readsATable matches a step of a plan that reads all of a table that grows: by
// itself, or through an index that it has no condition for.
var readsATable = regexp.MustCompile(`(Seq Scan|Bitmap \w+ Scan) on (task|scheduled|lease|dead|request|partition)\b|` +
	`Index (Only )?Scan using .*(\n +(Filter|Join Filter).*)*\n *(->|CTE|SubPlan|InitPlan|$)`)

// TestPlans: no statement reads a whole table, not even when it is planned while
// all tables are empty and vacuumed, which is when scans look cheapest.
func TestPlans(t *testing.T) {
	s := newStore(t)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	if err := s.vacuumAll(); err != nil {
		t.Fatal(err)
	}
	k := s.keys.get(p)
	var b batch
	b.add(k.key, everyPart())
	ids := []int64{1, 2}
	statements := map[string]statement{
		"commit":   b.statement(s.sql),
		"get":      {s.sql.get, []any{int64(k.key), []int32{0, 1}, ids}},
		"requests": {s.sql.requests, []any{int64(k.key), []int32{0}, [][]byte{{0}}}},
		"take":     {s.sql.take, []any{ids, []byte{}, []byte{}, []byte{}, int64(9)}},
	}
	for kind := row.Tasks; kind <= row.Dead; kind++ {
		for _, bytes := range []int{0, 100} {
			name := fmt.Sprintf("scan of %s within %d bytes", kind, bytes)
			statements[name] = s.scanStatement(k.key, row.Scan{Kind: kind, Priority: 3, Items: 10, Bytes: bytes})
		}
	}
	for name, st := range statements {
		text := plan(t, s, "COSTS OFF", st)
		if found := readsATable.FindString(text); found != "" {
			t.Errorf("%s: %s in\n%s", name, found, text)
		}
		if testing.Verbose() && (name == "commit" || strings.Contains(name, "tasks")) {
			t.Logf("%s:\n%s", name, text)
		}
	}
	if o := result(s, everyPart()); o.Result != store.Stored {
		t.Errorf("a commit of all parts = %v, %v", o.Result, o.Err)
	}
	for _, bad := range []string{"Seq Scan on task t\n", "Index Scan using partition_pkey on partition p\n    ->  Function Scan"} {
		if readsATable.FindString(bad) == "" {
			t.Errorf("%q is not found", bad)
		}
	}
}

// buffersOf adds up the pages that a plan touched.
func buffersOf(t *testing.T, text string) int {
	t.Helper()
	total := 0
	m := regexp.MustCompile(`Buffers: shared(?: hit=(\d+))?(?: read=(\d+))?`).FindStringSubmatch(text) // the first is of all
	if m == nil {
		t.Fatalf("no buffers in\n%s", text)
	}
	for _, n := range m[1:] {
		var pages int
		_, _ = fmt.Sscan(n, &pages) // an empty match adds nothing
		total += pages
	}
	return total
}

// finishedTasks is how many tasks are completed before scans are looked at.
func finishedTasks() uint64 {
	if os.Getenv("TASKRING_LONG") != "" {
		return 1_000_000
	}
	return 50_000
}

// TestScansDoNotGrow: after very many tasks were completed, with nothing cleaned
// up because of an open snapshot, a scan from the holder's level touches a few
// pages, and commits touch no more than before.
func TestScansDoNotGrow(t *testing.T) {
	s := newStore(t)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	tx, err := s.rest.BeginTx(context.Background(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(context.Background(), "SELECT count(*) FROM pg_class"); err != nil { // takes the snapshot
		t.Fatal(err)
	}
	const batchSize = 1000
	seq := uint64(0)
	turn := func(n int) {
		add, finish := put(p, 1), &row.Mutation{Partition: p, Epoch: 1}
		for range n {
			seq++
			add.PutTasks = append(add.PutTasks, put(p, 1, seq).PutTasks...)
			finish.DeleteTasks = append(finish.DeleteTasks, row.TaskKey{Priority: 3, ID: task.MakeID(1, seq)})
		}
		mustStore(t, s, add)
		mustStore(t, s, finish)
	}
	for seq < finishedTasks() {
		turn(batchSize)
	}
	level := task.MakeID(1, seq)
	mustStore(t, s, put(p, 1, seq+1, seq+2))
	k := s.keys.get(p)
	scan := row.Scan{Kind: row.Tasks, Priority: 3, After: row.Position{ID: level}, Items: 100, Bytes: 1 << 20}
	text := plan(t, s, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", s.scanStatement(k.key, scan))
	const most = 20
	if pages := buffersOf(t, text); pages > most {
		t.Errorf("after %d completed tasks a scan from the level touches %d pages, want at most %d:\n%s", seq, pages, most, text)
	}
	scan.After.ID = 0 // what the level saves
	t.Logf("from the level %d pages, from the start %d", buffersOf(t, text),
		buffersOf(t, plan(t, s, "ANALYZE, BUFFERS, COSTS OFF, TIMING OFF, SUMMARY OFF", s.scanStatement(k.key, scan))))
}

// TestVacuum: the store cleans up after itself, so that a queue through which
// very many tasks went is as small as after the first ones.
func TestVacuum(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	o.VacuumAfter = 2000
	s := open(t, o)
	p := orders.Partition(0)
	acquire(t, s, anna, p)
	const batchSize, turns = 500, 60
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for turn := range uint64(turns) {
		add, finish := put(p, 1), &row.Mutation{Partition: p, Epoch: 1}
		for seq := turn*batchSize + 1; seq <= (turn+1)*batchSize; seq++ {
			add.PutTasks = append(add.PutTasks, put(p, 1, seq).PutTasks...)
			finish.DeleteTasks = append(finish.DeleteTasks, row.TaskKey{Priority: 3, ID: task.MakeID(1, seq)})
		}
		mustStore(t, s, add)
		mustStore(t, s, finish)
		for s.vacuum.deleted[tableTask].Load() >= int64(o.VacuumAfter) { // it keeps up, or the test binary ends at its deadline
			<-tick.C
		}
	}
	var size int64
	if err := s.rest.QueryRow(context.Background(), "SELECT pg_table_size($1::text::regclass)", quoted(o.Schema)+".task").Scan(&size); err != nil {
		t.Fatal(err)
	}
	const most = 2 << 20 // of 30,000 rows with 3 MB
	if size > most {
		t.Errorf("after %d completed tasks the table has %d bytes, want at most %d", turns*batchSize, size, most)
	}
}

// TestPortable: nothing here ties the store to what only PostgreSQL itself does
// well: engines that speak its protocol lack these, or do them otherwise.
func TestPortable(t *testing.T) {
	forbidden := regexp.MustCompile(`(?i)\b(pg_(try_)?advisory\w*|listen\s+[a-z"]|notify\s+[a-z"]|pg_notify|unlogged|plpgsql|create\s+(trigger|function|extension|rule)|do\s+\$)`)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	migrations, err := filepath.Glob("migrations/*.sql")
	if err != nil || len(migrations) != schemaVersion() {
		t.Fatalf("%d migrations in files, %d in code, %v", len(migrations), schemaVersion(), err)
	}
	for _, path := range append(files, migrations...) {
		if strings.HasSuffix(path, "_test.go") || path == "doc.go" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if found := forbidden.FindString(string(text)); found != "" {
			t.Errorf("%s says %q: only portable SQL, see the package doc", path, found)
		}
	}
	for _, bad := range []string{"SELECT pg_advisory_lock(1)", "LISTEN x", "NOTIFY x", "CREATE UNLOGGED TABLE"} {
		if !forbidden.MatchString(bad) {
			t.Errorf("%q is not found", bad)
		}
	}
}
