package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/puddle/v2"

	"github.com/taskring/taskring/matching/store"
	"github.com/taskring/taskring/matching/task"
)

var (
	_ store.Store     = (*Store)(nil)
	_ store.Catalogue = (*Store)(nil)
)

// Store is a store of tasks in a PostgreSQL database. All methods may be called
// concurrently.
type Store struct {
	o       Options
	id      task.StoreID
	commits *pgxpool.Pool // of Commit alone, so that nothing else delays it
	rest    *pgxpool.Pool
	keys    *keyring
	sql     *statements
	watch   *watch
	vacuum  *vacuum

	closed   atomic.Bool
	wentBack atomic.Pointer[error]
	close    sync.Once
}

// Open connects to a store that [Migrate] made and checks that it can be used.
// The context bounds Open alone.
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.ensureDefaults(); err != nil {
		return nil, err
	}
	s := &Store{o: o, keys: newKeyring(maxKeys), sql: newStatements(o.Schema), watch: newWatch(o.CommitDeadline)}
	for pool, conns := range map[**pgxpool.Pool]int{&s.commits: o.CommitConns, &s.rest: o.ReadConns} {
		c, err := o.poolConfig(conns)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if *pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
			return nil, errors.Join(fmt.Errorf("open the store: %w", explained(err)), s.Close())
		}
	}
	if err := s.identify(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("store in schema %q: %w", o.Schema, err), s.Close())
	}
	s.vacuum = startVacuum(&s.o) //nolint:contextcheck // it ends with the store, not with Open
	return s, nil
}

// ID returns the store's id.
func (s *Store) ID() task.StoreID { return s.id }

// Healthy returns an error when nothing more should be added: while a commit has
// been in flight for longer than the commit deadline, and, until the store is
// opened anew, once the server was seen to have gone back in time
// ([ErrWentBack]). Healthy does not block.
func (s *Store) Healthy() error {
	if err := s.wentBack.Load(); err != nil {
		return *err
	}
	return s.watch.healthy()
}

// Close waits for calls in flight and closes all connections, see [store.Store].
func (s *Store) Close() error {
	s.closed.Store(true)
	s.close.Do(func() {
		if s.vacuum != nil {
			s.vacuum.stop()
		}
		for _, pool := range []*pgxpool.Pool{s.commits, s.rest} {
			if pool != nil {
				pool.Close()
			}
		}
	})
	return nil
}

// identify reads who the store is and whether this program may use it.
func (s *Store) identify(ctx context.Context) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	conn, err := s.connect(ctx, s.rest)
	if err != nil {
		return err
	}
	defer conn.Release()
	state, err := readState(ctx, conn.Conn(), s.o.Schema)
	if err != nil {
		return explained(err)
	}
	s.id = state.ID
	if err := state.check(); err != nil {
		return err
	}
	return checkRights(ctx, conn.Conn(), s.o.Schema)
}

// bounded gives a call a deadline. It lies a second behind the server's own
// limit of a statement, whose answer is the better one.
func (s *Store) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.o.StatementTimeout+time.Second)
}

// connect takes a connection out of a pool. The caller releases it.
func (s *Store) connect(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	if s.closed.Load() {
		return nil, ErrClosed
	}
	conn, err := pool.Acquire(ctx)
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(err, puddle.ErrClosedPool):
		return nil, ErrClosed
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w: %w", ErrNoConnection, context.Cause(ctx), err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNoConnection, explained(err))
}

// statement is one statement with its values.
type statement struct {
	text string
	args []any
}

// run executes a statement in a transaction of its own and calls each for each
// row of its answer. A row is no proof: what became of the statement is known
// when all of the answer was read, and the result says so with the error.
func (s *Store) run(ctx context.Context, pool *pgxpool.Pool, st statement, each func(pgx.Rows) error) (store.Result, error) {
	if ctx.Err() != nil {
		return store.NotStored, context.Cause(ctx)
	}
	conn, err := s.connect(ctx, pool)
	if err != nil {
		return store.NotStored, err
	}
	defer conn.Release()
	rows, err := conn.Query(ctx, st.text, st.args...)
	if err == nil {
		for rows.Next() && err == nil {
			err = each(rows)
		}
		rows.Close()
		err = errors.Join(rows.Err(), err)
	}
	err = errors.Join(err, takeUnconfirmed(conn.Conn()))
	if err == nil && conn.Conn().IsClosed() {
		err = errors.New("the connection broke before the server was ready again")
	}
	if err == nil {
		return store.Stored, nil
	}
	result := resultOf(err)
	if cause := context.Cause(ctx); cause != nil {
		err = fmt.Errorf("%w: %w", cause, err)
	}
	if conn.Conn().IsClosed() {
		pool.Reset() // the others are likely broken too
	}
	if isCode(err, "25006", "26000", "42P05") {
		// It leads to a server that is a standby by now, or to a pooler.
		_ = conn.Conn().Close(context.WithoutCancel(ctx))
	}
	return result, explained(err)
}

// read runs a statement that changes nothing. When its connection turns out to be
// broken before anything was read, most likely since the server restarted while
// it rested, another one is tried.
func (s *Store) read(ctx context.Context, st statement, each func(pgx.Rows) error) error {
	ctx, cancel := s.bounded(ctx)
	defer cancel()
	rows := 0
	counted := func(r pgx.Rows) error {
		rows++
		return each(r)
	}
	_, err := s.run(ctx, s.rest, st, counted)
	if _, answered := errors.AsType[*pgconn.PgError](err); err == nil || answered || rows > 0 || ctx.Err() != nil {
		return err
	}
	_, err = s.run(ctx, s.rest, st, counted)
	return err
}

// alarm says that the server forgot what it had confirmed.
func (s *Store) alarm(what string, held, found task.Epoch) {
	err := fmt.Errorf("%w: %s was taken with epoch %d and has epoch %d now; stop all nodes and start them again, tasks of the time between may be lost or run twice",
		ErrWentBack, what, held, found)
	if s.wentBack.CompareAndSwap(nil, &err) {
		s.o.Logger.Error("the store went back in time", "error", err)
	}
}
