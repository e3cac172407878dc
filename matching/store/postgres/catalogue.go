package postgres

import (
	"context"
	"fmt"
	"math"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/partition"
)

const listPartitions = `
SELECT namespace, queue, type, number, epoch, node, run_id, address, released, may_hold, acks, backlog FROM {s}.partition
 WHERE listed AND (namespace, queue, type, number) > ($1::bytea, $2::bytea, $3::int2, $4::int4)
 ORDER BY namespace, queue, type, number LIMIT $5`

// List lists the catalogue at one moment, see [store.Catalogue].
func (s *Store) List(ctx context.Context, after partition.ID, limit int) ([]store.Listed, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	number := after.Number
	if after == (partition.ID{}) {
		number = -1
	}
	args := []any{[]byte(after.Namespace), []byte(after.Name), int16(after.Type), number, min(limit, math.MaxInt32)}
	var listed []store.Listed
	err := s.read(ctx, statement{s.sql.list, args}, func(r pgx.Rows) error {
		var namespace, queue, node, runID, address, acks pgtype.DriverBytes
		var kind int16
		var epoch int64
		var l store.Listed
		if err := r.Scan(&namespace, &queue, &kind, &l.Partition.Number, &epoch, &node, &runID, &address,
			&l.Meta.Released, &l.Meta.MayHold, &acks, &l.Meta.Backlog); err != nil {
			return fmt.Errorf("a row: %w", err)
		}
		l.Partition.Queue = partition.Queue{Namespace: string(namespace), Name: string(queue), Type: partition.TaskType(kind)}
		owner := ownership(epoch, node, runID, address)
		l.Epoch, l.Holder, l.Meta.Listed = owner.Epoch, owner.Holder, true
		err := decodeAcks(&l.Meta, acks)
		listed = append(listed, l)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list partitions: %w", err)
	}
	return listed, nil
}

// A document that was removed keeps its row and version, with no content, so
// that no version ever names two contents.
const (
	getSettings = `
SELECT version, doc FROM {s}.settings WHERE namespace = $1 AND queue = $2 AND type = $3 AND doc IS NOT NULL`

	putFirstSettings = `
INSERT INTO {s}.settings AS s (namespace, queue, type, version, doc) VALUES ($1, $2, $3, 1, $4)
 ON CONFLICT (namespace, queue, type) DO UPDATE SET version = s.version + 1, doc = EXCLUDED.doc WHERE s.doc IS NULL
 RETURNING version`

	putNextSettings = `
UPDATE {s}.settings SET version = version + 1, doc = $4
 WHERE namespace = $1 AND queue = $2 AND type = $3 AND version = $5 AND doc IS NOT NULL RETURNING version`
)

func queueArgs(q partition.Queue) []any {
	return []any{[]byte(q.Namespace), []byte(q.Name), int16(q.Type)}
}

// Settings reads a queue's document, see [store.Catalogue].
func (s *Store) Settings(ctx context.Context, q partition.Queue) (doc []byte, version int64, err error) {
	if ctx.Err() != nil {
		return nil, 0, context.Cause(ctx)
	}
	err = s.read(ctx, statement{s.sql.settings, queueArgs(q)}, func(r pgx.Rows) error { return r.Scan(&version, &doc) })
	if err != nil {
		return nil, 0, fmt.Errorf("settings of %s: %w", q, err)
	}
	return doc, version, nil
}

// PutSettings writes a queue's document, see [store.Catalogue].
func (s *Store) PutSettings(ctx context.Context, q partition.Queue, doc []byte, ifVersion int64) (int64, error) {
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	if doc == nil && ifVersion == 0 { // to remove nothing needs no write
		_, version, err := s.Settings(ctx, q)
		if err == nil && version != 0 {
			err = store.ErrVersion
		}
		return 0, err
	}
	st := statement{s.sql.putFirst, append(queueArgs(q), doc)}
	if ifVersion != 0 {
		st = statement{s.sql.putNext, append(queueArgs(q), doc, ifVersion)}
	}
	var version int64
	err := s.read(ctx, st, func(r pgx.Rows) error { return r.Scan(&version) })
	switch {
	case err != nil:
		return 0, fmt.Errorf("settings of %s: %w", q, err)
	case version == 0: // no row had that version
		return 0, store.ErrVersion
	case doc == nil:
		return 0, nil
	}
	return version, nil
}
