package storetest

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// subject is a store under test with the checks that stories are told in.
type subject struct {
	rapid.TB // the test that the story belongs to
	Harness
	between func() // nil, or what happens between two steps
}

func (s *subject) close() {
	s.Helper()
	if err := s.Store.Close(); err != nil {
		s.Fatalf("close: %v", err)
	}
}

func (s *subject) flush() {
	s.Helper()
	if err := s.Flush(); err != nil {
		s.Fatalf("flush: %v", err)
	}
}

func (s *subject) compact() {
	s.Helper()
	if err := s.Compact(); err != nil {
		s.Fatalf("compact: %v", err)
	}
}

func (s *subject) reopen() {
	s.Helper()
	again, err := s.Reopen()
	if err != nil {
		s.Fatalf("reopen: %v", err)
	}
	s.Store = again
}

// step ends a step of a story.
func (s *subject) step() {
	s.Helper()
	if s.between != nil {
		s.between()
	}
}

// acquire takes one partition and returns the answer.
func (s *subject) acquire(h task.Holder, p partition.ID) store.Acquired {
	s.Helper()
	taken, err := s.Store.Acquire(context.Background(), h, []partition.ID{p})
	if err != nil || len(taken) != 1 || taken[0].Err != nil {
		s.Fatalf("acquire of %s = %+v, %v", p, taken, err)
	}
	return taken[0]
}

// commit commits mutations that are all to be stored, and ends the step.
func (s *subject) commit(ms ...*row.Mutation) {
	s.Helper()
	outcomes := s.outcomes(ms...)
	for i, m := range ms {
		if o := outcomes[i]; o.Result != store.Stored || o.Err != nil {
			s.Fatalf("commit of %+v = %v, %v, want stored", m, o.Result, o.Err)
		}
	}
	s.step()
}

func (s *subject) outcomes(ms ...*row.Mutation) []store.Outcome {
	s.Helper()
	outcomes := s.Store.Commit(context.Background(), ms)
	if len(outcomes) != len(ms) {
		s.Fatalf("commit of %d mutations has %d outcomes", len(ms), len(outcomes))
	}
	return outcomes
}

func (s *subject) scan(p partition.ID, scan row.Scan) row.Page {
	s.Helper()
	page, err := s.Store.Scan(context.Background(), p, scan)
	if err != nil {
		s.Fatalf("scan %+v of %s: %v", scan, p, err)
	}
	return page
}

func (s *subject) get(p partition.ID, ids ...task.ID) []row.Record {
	s.Helper()
	records, err := s.Store.Get(context.Background(), p, ids)
	if err != nil || len(records) != len(ids) {
		s.Fatalf("get of %v in %s = %d records, %v", ids, p, len(records), err)
	}
	return records
}

// same fails unless got and want are deeply equal.
func (s *subject) same(what string, got, want any) {
	s.Helper()
	if !reflect.DeepEqual(got, want) {
		s.Fatalf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

// show prints values with what their pointers point to.
func show(v any) string {
	switch v := v.(type) {
	case row.Page:
		return fmt.Sprintf("more=%v tasks%s leases%+v dead%s", v.More, showTasks(v.Tasks), v.Leases, showDead(v.Dead))
	case row.Record:
		return fmt.Sprintf("%s found=%v %s %s dead%s lease=%+v", v.ID, v.Found, v.Kind, showTasks([]row.Task{v.Task}), showDead([]row.DeadTask{v.Dead}), v.Lease)
	default:
		return fmt.Sprintf("%+v", v)
	}
}

func showTasks(ts []row.Task) string {
	var text strings.Builder
	for _, t := range ts {
		fmt.Fprintf(&text, " {due %d folded %+v %+v}", t.Due, t.Folded, t.Task)
	}
	return "[" + text.String() + "]"
}

func showDead(ds []row.DeadTask) string {
	var text strings.Builder
	for _, d := range ds {
		fmt.Fprintf(&text, " {%q at %d %+v}", d.Reason, d.At, d.Task)
	}
	return "[" + text.String() + "]"
}

// matches compares everything that the store has of the partition with the
// model: all kinds of rows, every id that the model ever saw, the requests.
func (s *subject) matches(p partition.ID, m *model) {
	s.Helper()
	for _, scan := range everyScan() {
		s.same(fmt.Sprintf("scan %+v of %s", scan, p), s.scan(p, scan), m.scan(scan))
	}
	ids := m.ids()
	for i, got := range s.get(p, ids...) {
		s.same(fmt.Sprintf("task %s of %s", ids[i], p), got, m.get(ids[i]))
	}
	names := m.requestIDs()
	got, err := s.Store.Requests(context.Background(), p, names)
	if err != nil {
		s.Fatalf("requests of %s: %v", p, err)
	}
	want := m.requests(names)
	if len(got)+len(want) > 0 {
		s.same(fmt.Sprintf("requests of %s", p), got, want)
	}
}

// everyScan returns scans that together read all there is.
func everyScan() []row.Scan {
	const all = 1 << 20
	scans := []row.Scan{
		{Kind: row.Scheduled, Items: all}, {Kind: row.Leases, Items: all}, {Kind: row.Dead, Items: all},
	}
	for p := task.MinPriority; p <= task.MaxPriority; p++ {
		scans = append(scans, row.Scan{Kind: row.Tasks, Priority: p, Items: all})
	}
	return scans
}
