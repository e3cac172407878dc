package pebble

import (
	"context"
	"errors"
	"fmt"

	pebbledb "github.com/cockroachdb/pebble/v2"

	"github.com/taskring/taskring/matching/row"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/partition"
)

// numberOf returns the partition's number, or 0 when nobody ever took it.
func (s *Store) numberOf(p partition.ID) (number, error) {
	s.mu.Lock()
	h := s.mu.held[p]
	s.mu.Unlock()
	if h == nil { // a partition that is only looked at is not remembered
		var err error
		if h, err = s.readHeld(s.db, p); h == nil || err != nil {
			return 0, err
		}
	}
	return h.number, nil
}

// Scan reads rows of one kind, see [store.Store].
func (s *Store) Scan(ctx context.Context, p partition.ID, scan row.Scan) (row.Page, error) {
	if err := errors.Join(scan.Validate(), context.Cause(ctx)); err != nil {
		return row.Page{}, err
	}
	n, err := s.numberOf(p)
	if n == 0 || err != nil {
		return row.Page{}, err
	}
	it, err := s.db.NewIter(bounds(n, scan))
	if err != nil {
		return row.Page{}, fmt.Errorf("scan %s of %s: %w", scan.Kind, p, err)
	}
	page, err := readPage(it, scan)
	if err := errors.Join(err, it.Close()); err != nil {
		return row.Page{}, fmt.Errorf("scan %s of %s: %w", scan.Kind, p, err)
	}
	return page, nil
}

// bounds returns the keys that a scan may read.
func bounds(n number, s row.Scan) *pebbledb.IterOptions {
	o := &pebbledb.IterOptions{}
	switch s.Kind {
	case row.Tasks:
		o.LowerBound = justAfter(appendTaskKey(nil, n, row.TaskKey{Priority: s.Priority, ID: s.After.ID}))
		if s.Through != 0 {
			o.UpperBound = justAfter(appendTaskKey(nil, n, row.TaskKey{Priority: s.Priority, ID: s.Through}))
		} else {
			o.UpperBound = pastPrefix(appendTaskPrefix(nil, n, s.Priority))
		}
	case row.Scheduled:
		o.LowerBound = justAfter(appendScheduledKey(nil, n, row.DueKey{Due: s.After.Due, ID: s.After.ID}))
		o.UpperBound = pastPrefix(appendNumber(nil, kindScheduled, n))
		if s.Until != 0 {
			o.UpperBound = pastPrefix(appendDue(appendNumber(nil, kindScheduled, n), s.Until))
		}
	case row.Leases:
		o.LowerBound = justAfter(appendIDKey(nil, kindLease, n, s.After.ID))
		o.UpperBound = pastPrefix(appendNumber(nil, kindLease, n))
	case row.Dead:
		o.LowerBound = justAfter(appendIDKey(nil, kindDead, n, s.After.ID))
		o.UpperBound = pastPrefix(appendNumber(nil, kindDead, n))
	}
	return o
}

// readPage reads rows until a limit of the scan is reached.
func readPage(it *pebbledb.Iterator, s row.Scan) (row.Page, error) {
	var page row.Page
	size := 0
	for ok := it.First(); ok; ok = it.Next() {
		value, err := it.ValueAndErr()
		if err != nil {
			return row.Page{}, err
		}
		rowSize, err := addRow(&page, s.Kind, it.Key(), value)
		if err != nil {
			return row.Page{}, err
		}
		size += rowSize
		if s.Reached(len(page.Tasks)+len(page.Leases)+len(page.Dead), size) {
			page.More = true
			break
		}
	}
	return page, it.Error()
}

// addRow decodes a row into the page and returns its size.
func addRow(page *row.Page, kind row.Kind, key, value []byte) (size int, err error) {
	id, err := idOf(key)
	if err != nil {
		return 0, err
	}
	switch kind {
	case row.Tasks, row.Scheduled: // below
	case row.Leases:
		l, err := row.DecodeLease(id, value)
		page.Leases = append(page.Leases, l)
		return l.Size(), err
	case row.Dead:
		d, err := row.DecodeDead(id, value)
		if err != nil {
			return 0, err
		}
		page.Dead = append(page.Dead, d)
		return d.Task.Size(), nil
	}
	t, err := row.DecodeTask(id, value)
	if err != nil {
		return 0, err
	}
	if kind == row.Scheduled {
		if t.Due, err = dueOf(key, 1+numberLen); err != nil {
			return 0, err
		}
	}
	page.Tasks = append(page.Tasks, t)
	return t.Task.Size(), nil
}

// Get reads all there is of the given tasks, see [store.Store]. It reads as of
// one moment, so that a task which moves meanwhile is found in one of its places.
func (s *Store) Get(ctx context.Context, p partition.ID, ids []task.ID) ([]row.Record, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	records := make([]row.Record, len(ids))
	for i, id := range ids {
		records[i].ID = id
	}
	n, err := s.numberOf(p)
	if n == 0 || err != nil {
		return records, err
	}
	it, err := s.db.NewIter(nil)
	if err != nil {
		return nil, fmt.Errorf("get %d tasks of %s: %w", len(ids), p, err)
	}
	look := look{number: n, it: it}
	for i := 0; i < len(records) && err == nil; i++ {
		err = look.up(&records[i])
	}
	if err := errors.Join(err, it.Close()); err != nil {
		return nil, fmt.Errorf("get %d tasks of %s: %w", len(ids), p, err)
	}
	return records, nil
}

// look looks tasks of one partition up. One iterator serves all look-ups: it is
// a view of one moment, and to move it costs less than half of a Get.
type look struct {
	number number
	it     *pebbledb.Iterator
	key    []byte
}

// value returns the value of look.key, if it exists, until the iterator moves.
func (l *look) value() (value []byte, found bool, err error) {
	if !l.it.SeekPrefixGE(l.key) { // the whole key is the prefix: filters answer most misses
		return nil, false, l.it.Error()
	}
	value, err = l.it.ValueAndErr()
	return value, err == nil, err
}

// up fills the record of a task.
func (l *look) up(rec *row.Record) error {
	if err := l.lease(rec); err != nil {
		return err
	}
	for _, try := range []func(*look, *row.Record) error{(*look).task, (*look).scheduled, (*look).dead} {
		if err := try(l, rec); err != nil || rec.Found {
			return err
		}
	}
	return nil
}

func (l *look) lease(rec *row.Record) error {
	l.key = appendIDKey(l.key[:0], kindLease, l.number, rec.ID)
	value, found, err := l.value()
	if err != nil || !found {
		return err
	}
	lease, err := row.DecodeLease(rec.ID, value)
	rec.Lease = &lease
	return err
}

// task tries the priorities one by one, most likely the default one first.
func (l *look) task(rec *row.Record) error {
	for _, p := range [task.Priorities]task.Priority{task.DefaultPriority, 1, 2, 4, 5} {
		l.key = appendTaskKey(l.key[:0], l.number, row.TaskKey{Priority: p, ID: rec.ID})
		value, found, err := l.value()
		if err != nil {
			return err
		}
		if found {
			rec.Found, rec.Kind = true, row.Tasks
			rec.Task, err = row.DecodeTask(rec.ID, value)
			return err
		}
	}
	return nil
}

func (l *look) scheduled(rec *row.Record) error {
	due, found, err := l.due(rec.ID)
	if err != nil || !found {
		return err
	}
	l.key = appendScheduledKey(l.key[:0], l.number, row.DueKey{Due: due, ID: rec.ID})
	value, found, err := l.value()
	if err != nil {
		return err
	}
	if !found {
		return fmt.Errorf("%w: the index knows scheduled task %s, but there is no such row", row.ErrCorrupt, rec.ID)
	}
	rec.Found, rec.Kind = true, row.Scheduled
	rec.Task, err = row.DecodeTask(rec.ID, value)
	rec.Task.Due = due
	return err
}

// due finds the due time of a scheduled task in the index.
func (l *look) due(id task.ID) (task.Micros, bool, error) {
	l.key = appendIDKey(l.key[:0], kindIndex, l.number, id)
	if !l.it.SeekGE(l.key) {
		return 0, false, l.it.Error()
	}
	found := l.it.Key()
	if len(found) != dueIDLen || string(found[:len(l.key)]) != string(l.key) {
		return 0, false, nil
	}
	due, err := dueOf(found, 1+numberLen+idLen)
	return due, true, err
}

func (l *look) dead(rec *row.Record) error {
	l.key = appendIDKey(l.key[:0], kindDead, l.number, rec.ID)
	value, found, err := l.value()
	if err != nil || !found {
		return err
	}
	rec.Found, rec.Kind = true, row.Dead
	rec.Dead, err = row.DecodeDead(rec.ID, value)
	rec.Task = row.Task{Task: rec.Dead.Task}
	return err
}

// Requests reads request rows, see [store.Store].
func (s *Store) Requests(ctx context.Context, p partition.ID, requestIDs []string) ([]row.Request, error) {
	n, err := s.numberOf(p)
	if err := errors.Join(err, context.Cause(ctx)); n == 0 || err != nil {
		return nil, err
	}
	at := s.db.NewSnapshot()
	var found []row.Request
	for _, id := range requestIDs {
		value, ok, readErr := s.read(at, appendRequestKey(nil, n, id))
		if readErr == nil && ok {
			var q row.Request
			q, readErr = decodeRequest(id, value)
			found = append(found, q)
		}
		err = errors.Join(err, readErr)
	}
	if err := errors.Join(err, at.Close()); err != nil {
		return nil, fmt.Errorf("requests of %s: %w", p, err)
	}
	return found, nil
}
