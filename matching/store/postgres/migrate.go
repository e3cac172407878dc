package postgres

import (
	"context"
	"crypto/rand"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskring/taskring/matching/task"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step from a version of the schema to the next.
type migration struct {
	file string // in the folder migrations, without its ending
	// oldest is the lowest version of the schema whose code still works with the
	// tables after this step, so that nodes can be replaced one by one.
	oldest int
}

// migrations stand in order: the first makes version 1.
func migrations() []migration {
	return []migration{
		{file: "0001_tables", oldest: 1},
	}
}

// schemaVersion is the version of the schema that this code is written for.
func schemaVersion() int { return len(migrations()) }

// State is what a schema holds, as [Status] and [Migrate] see it.
type State struct {
	// Version of the tables; 0 when the schema holds no store.
	Version int
	// Known is the version that this program is written for.
	Known int
	// Oldest is the lowest version that a program must know to use the tables.
	Oldest int
	// Pending names the migrations that are missing, in order.
	Pending []string
	// ID names the store; zero when there is none.
	ID task.StoreID
	// Created is when the store was made.
	Created time.Time
	// Server is the server's version, as it says it.
	Server string
}

// check reports why this program cannot use a schema in this state.
func (s State) check() error {
	switch {
	case s.Version == 0:
		return fmt.Errorf("%w: it holds no store; run `taskring store migrate`", ErrNotMigrated)
	case s.Version < s.Known:
		return fmt.Errorf("%w: it is version %d, this program needs version %d; run `taskring store migrate`", ErrNotMigrated, s.Version, s.Known)
	case s.Oldest > s.Known:
		return fmt.Errorf("%w: it is version %d for programs that know version %d or later, this one knows %d; run a newer program",
			ErrNewerSchema, s.Version, s.Oldest, s.Known)
	}
	return nil
}

// Status tells what the schema holds. It changes nothing.
func Status(ctx context.Context, o Options) (State, error) {
	return withConn(ctx, o, func(ctx context.Context, conn *pgx.Conn) (State, error) {
		return readState(ctx, conn, o.Schema)
	})
}

// Migrate makes the store's tables, or brings them to the version of this
// program, one transaction for each step, and returns the state after it. To
// call it again, or from several nodes at once, is harmless. Tables of a newer
// version are left as they are, and are no error while this program may use them.
func Migrate(ctx context.Context, o Options) (State, error) {
	return withConn(ctx, o, func(ctx context.Context, conn *pgx.Conn) (State, error) {
		if err := checkServer(ctx, conn); err != nil {
			return State{}, err
		}
		if err := createFormat(ctx, conn, o.Schema); err != nil {
			return State{}, err
		}
		for {
			more, err := step(ctx, conn, o.Schema)
			if err != nil {
				return State{}, err
			}
			if !more {
				break
			}
		}
		state, err := readState(ctx, conn, o.Schema)
		if err != nil {
			return State{}, err
		}
		return state, state.check()
	})
}

// withConn calls f with a connection that has no time limit for statements: a
// migration takes as long as it takes. The schema's default stands in o.
func withConn(ctx context.Context, o Options, f func(context.Context, *pgx.Conn) (State, error)) (state State, err error) {
	if err := o.ensureDefaults(); err != nil {
		return State{}, err
	}
	c, err := o.connConfig(map[string]string{"statement_timeout": "0"})
	if err != nil {
		return State{}, err
	}
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return State{}, fmt.Errorf("%w: %w", ErrNoConnection, explained(err))
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if state, err = f(ctx, conn); err != nil {
		return State{}, fmt.Errorf("schema %q: %w", o.Schema, explained(err))
	}
	return state, nil
}

func readState(ctx context.Context, conn *pgx.Conn, schema string) (State, error) {
	state := State{Known: schemaVersion(), Server: conn.PgConn().ParameterStatus("server_version")}
	var id []byte
	err := conn.QueryRow(ctx, inSchema(schema, `SELECT version, oldest, id, created FROM {s}.format`)).
		Scan(&state.Version, &state.Oldest, &id, &state.Created)
	switch {
	case isCode(err, "42P01", "3F000"), errors.Is(err, pgx.ErrNoRows):
		state.Version, state.Oldest = 0, 0
	case err != nil:
		return State{}, fmt.Errorf("read what the schema holds: %w", err)
	case copy(state.ID[:], id) != len(id) || len(id) != len(state.ID):
		return State{}, fmt.Errorf("the store's id has %d bytes, want %d", len(id), len(state.ID))
	}
	for _, m := range migrations()[min(state.Version, state.Known):] {
		state.Pending = append(state.Pending, m.file)
	}
	return state, nil
}

const makeFormat = `CREATE TABLE IF NOT EXISTS {s}.format (
 one bool PRIMARY KEY DEFAULT true CHECK (one), version int4 NOT NULL, oldest int4 NOT NULL, id bytea NOT NULL, created timestamptz NOT NULL)`

const firstFormat = `INSERT INTO {s}.format (version, oldest, id, created) VALUES (0, 0, $1, now()) ON CONFLICT DO NOTHING`

// createFormat makes the schema and the table that says what else it holds. Two
// programs that do so at once may fail on each other's names: the loser tries
// again and finds them there.
func createFormat(ctx context.Context, conn *pgx.Conn, schema string) error {
	const tries = 5
	var err error
	for range tries {
		if err = tryCreateFormat(ctx, conn, schema); !isCode(err, "23505", "42P06", "42P07") {
			break
		}
	}
	return err
}

func tryCreateFormat(ctx context.Context, conn *pgx.Conn, schema string) error {
	if state, err := readState(ctx, conn, schema); err != nil || state.ID != (task.StoreID{}) {
		return err
	}
	var exists bool // who may not create a schema may still use one that was made for him
	if err := conn.QueryRow(ctx, `SELECT count(*) > 0 FROM pg_namespace WHERE nspname = $1`, schema).Scan(&exists); err != nil {
		return fmt.Errorf("look for the schema: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, inSchema(schema, `CREATE SCHEMA IF NOT EXISTS {s}`)); err != nil {
			return fmt.Errorf("create the schema: %w", err)
		}
	}
	if _, err := conn.Exec(ctx, inSchema(schema, makeFormat)); err != nil {
		return fmt.Errorf("create table format: %w", err)
	}
	id := make([]byte, len(task.StoreID{}))
	_, _ = rand.Read(id) // never fails: it ends the process instead
	if _, err := conn.Exec(ctx, inSchema(schema, firstFormat), id); err != nil {
		return fmt.Errorf("name the store: %w", err)
	}
	return nil
}

// step makes the next migration and reports whether there may be another. The
// lock lets one program at a time do so.
func step(ctx context.Context, conn *pgx.Conn, schema string) (more bool, err error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return false, fmt.Errorf("begin a migration: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }() // does nothing after a commit
	if _, err := tx.Exec(ctx, inSchema(schema, `LOCK TABLE {s}.format IN EXCLUSIVE MODE`)); err != nil {
		return false, fmt.Errorf("wait for other migrations: %w", err)
	}
	var version int
	if err := tx.QueryRow(ctx, inSchema(schema, `SELECT version FROM {s}.format`)).Scan(&version); err != nil {
		return false, fmt.Errorf("read the version: %w", err)
	}
	if version >= schemaVersion() {
		return false, nil
	}
	m := migrations()[version]
	text, err := migrationFiles.ReadFile("migrations/" + m.file + ".sql")
	if err != nil {
		return false, fmt.Errorf("migration %s: %w", m.file, err)
	}
	// The simple protocol takes many statements at once; there are no values in them.
	if _, err := tx.Exec(ctx, inSchema(schema, string(text)), pgx.QueryExecModeSimpleProtocol); err != nil {
		return false, fmt.Errorf("migration %s: %w", m.file, err)
	}
	if _, err := tx.Exec(ctx, inSchema(schema, `UPDATE {s}.format SET version = $1, oldest = $2`), version+1, m.oldest); err != nil {
		return false, fmt.Errorf("migration %s: %w", m.file, err)
	}
	if err := tx.Commit(ctx); err != nil {
		return false, fmt.Errorf("migration %s: %w", m.file, err)
	}
	return true, nil
}

// inSchema puts the schema where a statement says {s}.
func inSchema(schema, sql string) string { return strings.ReplaceAll(sql, "{s}", quoted(schema)) }

// isCode reports whether err is the server's with one of the codes.
func isCode(err error, codes ...string) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return false
	}
	return slices.Contains(codes, pg.Code)
}
