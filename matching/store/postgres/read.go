package postgres

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// Scans answer rows of the form (id, due, body). The last value is how many.
const (
	scanTasks = `
SELECT id, 0::int8 AS due, body FROM {s}.task WHERE key = $1 AND pri = $2::int2 AND id > $3 AND id <= $4 ORDER BY id LIMIT $5`

	scanScheduled = `
SELECT id, due, body FROM {s}.scheduled WHERE key = $1 AND (due, id) > ($2::int8, $3::int8) AND due <= $4 ORDER BY due, id LIMIT $5`

	scanLeases = `
SELECT id, 0::int8 AS due, body FROM {s}.lease WHERE key = $1 AND id > $2 ORDER BY id LIMIT $3`

	scanDead = `
SELECT id, 0::int8 AS due, body FROM {s}.dead WHERE key = $1 AND id > $2 ORDER BY id LIMIT $3`
)

// smallBody is the size of a body up to which the server does not count it
// against the bytes of a scan.
const smallBody = 4096

// withinBytes ends a scan on the server where its big rows reach so many bytes,
// given by the value after the scan's own. Rows are counted exactly on arrival,
// by their size in memory, which the server does not know; here it is enough
// that a page of big rows is not sent whole for its first ones.
func withinBytes(scan, order string, valuesOfScan int) string {
	return fmt.Sprintf(`SELECT id, due, body FROM (SELECT id, due, body,
 sum(greatest(octet_length(body) - %d, 0)) OVER (ORDER BY %s ROWS UNBOUNDED PRECEDING) - greatest(octet_length(body) - %d, 0) AS before
 FROM (%s) page) counted WHERE before < $%d::int8 ORDER BY %s`, smallBody, order, smallBody, scan, valuesOfScan+1, order)
}

// Scan reads rows of one kind, see [store.Store].
func (s *Store) Scan(ctx context.Context, p partition.ID, scan row.Scan) (row.Page, error) {
	if err := errors.Join(scan.Validate(), context.Cause(ctx)); err != nil {
		return row.Page{}, err
	}
	k, found, err := s.keyOf(ctx, p)
	if err != nil || !found {
		return row.Page{}, err
	}
	page, size, rows := row.Page{}, 0, 0
	err = s.read(ctx, s.scanStatement(k, scan), func(r pgx.Rows) error {
		rows++
		if page.More {
			return nil // a row beyond the bytes that are wanted
		}
		n, err := addRow(&page, scan.Kind, r)
		size += n
		page.More = scan.Reached(rows, size)
		return err
	})
	if err != nil {
		return row.Page{}, fmt.Errorf("scan %s of %s: %w", scan.Kind, p, err)
	}
	return page, nil
}

func (s *Store) scanStatement(k key, scan row.Scan) statement {
	text, inBytes, args := s.sql.leases, s.sql.leases, []any{int64(k)}
	items := min(scan.Items, math.MaxInt32)
	switch scan.Kind {
	case row.Tasks:
		through := scan.Through
		if through == 0 {
			through = math.MaxUint64
		}
		text, inBytes = s.sql.tasks, s.sql.tasksInBytes
		args = append(args, int16(scan.Priority), signed(scan.After.ID), signed(through), items)
	case row.Scheduled:
		until := scan.Until
		if until == 0 {
			until = math.MaxInt64
		}
		text, inBytes = s.sql.scheduled, s.sql.scheduledInBytes
		args = append(args, int64(scan.After.Due), signed(scan.After.ID), int64(until), items)
	case row.Leases: // small rows, which their number bounds well enough
		args = append(args, signed(scan.After.ID), items)
	case row.Dead:
		text, inBytes = s.sql.dead, s.sql.deadInBytes
		args = append(args, signed(scan.After.ID), items)
	}
	if scan.Bytes > 0 && scan.Kind != row.Leases {
		return statement{inBytes, append(args, int64(scan.Bytes))}
	}
	return statement{text, args}
}

// addRow decodes a row into the page and returns its size.
func addRow(page *row.Page, kind row.Kind, r pgx.Rows) (size int, err error) {
	var id, due int64
	var body pgtype.DriverBytes
	if err := r.Scan(&id, &due, &body); err != nil {
		return 0, fmt.Errorf("a row: %w", err)
	}
	switch kind {
	case row.Leases:
		l, err := row.DecodeLease(unsigned(id), body)
		page.Leases = append(page.Leases, l)
		return l.Size(), err
	case row.Dead:
		d, err := row.DecodeDead(unsigned(id), body)
		if err != nil {
			return 0, err
		}
		page.Dead = append(page.Dead, d)
		return d.Task.Size(), nil
	default:
		t, err := row.DecodeTask(unsigned(id), body)
		if err != nil {
			return 0, err
		}
		t.Due = task.Micros(due)
		page.Tasks = append(page.Tasks, t)
		return t.Task.Size(), nil
	}
}

// keyOf returns the key of a partition, if anybody ever took it.
func (s *Store) keyOf(ctx context.Context, p partition.ID) (key, bool, error) {
	if s.closed.Load() {
		return 0, false, ErrClosed
	}
	if k := s.keys.get(p); k.exists {
		return k.key, true, nil
	}
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	all, err := s.resolve(ctx, s.rest, []partition.ID{p})
	if err != nil {
		return 0, false, fmt.Errorf("look for %s: %w", p, err)
	}
	return all[0].key, all[0].exists, nil
}

// getTasks reads all places where a task may be in one statement, as of one
// moment: a task on its way from one to another is found in one of them.
const getTasks = `
SELECT i.n, x.kind, x.due, x.body FROM unnest($2::int4[], $3::int8[]) i(n, id) CROSS JOIN LATERAL (
 (SELECT 1::int2 AS kind, 0::int8 AS due, body FROM {s}.task WHERE key = $1 AND pri = ANY('{1,2,3,4,5}'::int2[]) AND id = i.id OFFSET 0)
 UNION ALL (SELECT 2::int2, due, body FROM {s}.scheduled WHERE key = $1 AND id = i.id OFFSET 0)
 UNION ALL (SELECT 3::int2, 0::int8, body FROM {s}.lease WHERE key = $1 AND id = i.id OFFSET 0)
 UNION ALL (SELECT 4::int2, 0::int8, body FROM {s}.dead WHERE key = $1 AND id = i.id OFFSET 0)) x`

// Get reads all there is of the given tasks, see [store.Store].
func (s *Store) Get(ctx context.Context, p partition.ID, ids []task.ID) ([]row.Record, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	records := make([]row.Record, len(ids))
	index, wanted := make([]int32, len(ids)), make([]int64, len(ids))
	for i, id := range ids {
		records[i].ID = id
		index[i], wanted[i] = int32(i), signed(id)
	}
	k, found, err := s.keyOf(ctx, p)
	if err != nil || !found || len(ids) == 0 {
		return records, err
	}
	err = s.read(ctx, statement{s.sql.get, []any{int64(k), index, wanted}}, func(r pgx.Rows) error {
		var i int32
		var kind int16
		var due int64
		var body pgtype.DriverBytes
		if err := r.Scan(&i, &kind, &due, &body); err != nil {
			return fmt.Errorf("a row: %w", err)
		}
		return fill(&records[i], row.Kind(kind), task.Micros(due), body)
	})
	if err != nil {
		return nil, fmt.Errorf("get %d tasks of %s: %w", len(ids), p, err)
	}
	return records, nil
}

// fill adds one row to the record of its task.
func fill(rec *row.Record, kind row.Kind, due task.Micros, body []byte) error {
	var err error
	switch kind {
	case row.Leases:
		var l row.Lease
		l, err = row.DecodeLease(rec.ID, body)
		rec.Lease = &l
		return err
	case row.Dead:
		rec.Dead, err = row.DecodeDead(rec.ID, body)
		rec.Task = row.Task{Task: rec.Dead.Task}
	default:
		rec.Task, err = row.DecodeTask(rec.ID, body)
		rec.Task.Due = due
	}
	rec.Found, rec.Kind = true, kind
	return err
}

const getRequests = `
SELECT i.n, r.id, r.at FROM unnest($2::int4[], $3::bytea[]) i(n, name) CROSS JOIN LATERAL
 (SELECT id, at FROM {s}.request WHERE key = $1 AND name = i.name OFFSET 0) r ORDER BY i.n`

// Requests reads request rows, see [store.Store].
func (s *Store) Requests(ctx context.Context, p partition.ID, requestIDs []string) ([]row.Request, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	k, ok, err := s.keyOf(ctx, p)
	if err != nil || !ok || len(requestIDs) == 0 {
		return nil, err
	}
	index, names := make([]int32, len(requestIDs)), make([][]byte, len(requestIDs))
	for i, id := range requestIDs {
		index[i], names[i] = int32(i), requestName(id)
	}
	var found []row.Request
	err = s.read(ctx, statement{s.sql.requests, []any{int64(k), index, names}}, func(r pgx.Rows) error {
		var i int32
		var id, at int64
		if err := r.Scan(&i, &id, &at); err != nil {
			return fmt.Errorf("a row: %w", err)
		}
		found = append(found, row.Request{RequestID: requestIDs[i], ID: unsigned(id), At: task.Micros(at)})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("requests of %s: %w", p, err)
	}
	return found, nil
}
