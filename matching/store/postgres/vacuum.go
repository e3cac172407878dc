package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// The tables that deletes leave holes in.
const (
	tableTask = iota
	tableScheduled
	tableLease
	tableDead
	tableRequest
	tables
)

func tableNames() [tables]string {
	return [tables]string{"task", "scheduled", "lease", "dead", "request"}
}

// vacuum counts deleted rows and vacuums a table after so many, in one goroutine
// and over a connection of its own that lives as long as one vacuum.
type vacuum struct {
	o       *Options
	deleted [tables]atomic.Int64 // since the last vacuum
	due     [tables]atomic.Int64 // so many deleted rows are worth a look
	wake    chan struct{}        // one slot: a table may be due
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// startVacuum starts counting. It returns nil when it is switched off.
func startVacuum(o *Options) *vacuum {
	if o.VacuumAfter < 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &vacuum{o: o, wake: make(chan struct{}, 1), cancel: cancel}
	for table := range v.due {
		v.due[table].Store(int64(o.VacuumAfter))
	}
	v.done.Go(func() { v.loop(ctx) })
	return v
}

// stop ends a vacuum that is running and waits for it.
func (v *vacuum) stop() {
	v.cancel()
	v.done.Wait()
}

// add counts deleted rows of a table. It does not block.
func (v *vacuum) add(table, rows int) {
	if v == nil || rows == 0 || v.deleted[table].Add(int64(rows)) < v.due[table].Load() {
		return
	}
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

func (v *vacuum) loop(ctx context.Context) {
	for {
		select {
		case <-v.wake:
		case <-ctx.Done():
			return
		}
		for table := range v.deleted {
			v.maybeClean(ctx, table)
		}
	}
}

// maybeClean vacuums a table if enough of its rows were deleted.
func (v *vacuum) maybeClean(ctx context.Context, table int) {
	n := v.deleted[table].Load()
	if n < v.due[table].Load() {
		return
	}
	if err := v.clean(ctx, table, n); err != nil && ctx.Err() == nil {
		v.deleted[table].Store(0) // not again at once
		v.o.Logger.Warn("a table could not be vacuumed; autovacuum will have to", "table", tableNames()[table], "error", err)
	}
}

// biggerShare is the part of a big table that has to be deleted before it is
// vacuumed: a vacuum reads the whole index, which with a backlog of millions is
// dear.
const biggerShare = 20

// clean vacuums a table of which n rows were deleted, unless it is so big that
// these are few.
func (v *vacuum) clean(ctx context.Context, table int, n int64) (err error) {
	c, err := v.o.connConfig(map[string]string{"statement_timeout": "0", "lock_timeout": "0"})
	if err != nil {
		return err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoConnection, explained(err))
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	name := quoted(v.o.Schema) + "." + tableNames()[table]
	var rows float64
	if err := conn.QueryRow(ctx, `SELECT reltuples FROM pg_class WHERE oid = $1::text::regclass`, name).Scan(&rows); err != nil {
		return fmt.Errorf("size of the table: %w", explained(err))
	}
	if few := int64(rows) / biggerShare; n < few {
		v.due[table].Store(few)
		return nil
	}
	if _, err := conn.Exec(ctx, `VACUUM (TRUNCATE OFF, INDEX_CLEANUP ON, SKIP_LOCKED) `+name); err != nil {
		return explained(err)
	}
	v.deleted[table].Add(-n)
	v.due[table].Store(int64(v.o.VacuumAfter))
	return nil
}
