package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/taskring/taskring/matching/store"
)

// Errors of the store, matched with errors.Is. All but the last four also end
// Open.
var (
	// ErrServerTooOld means that the server is older than PostgreSQL 15.
	ErrServerTooOld = errors.New("the server is too old")
	// ErrNotDurable means that the server may forget what it confirmed.
	ErrNotDurable = errors.New("the server would lose tasks")
	// ErrReadOnly means that the server takes no writes: a standby, or one whose
	// default_transaction_read_only is on.
	ErrReadOnly = errors.New("the server takes no writes")
	// ErrRights means that the role may not do what the store has to do.
	ErrRights = errors.New("the role lacks rights")
	// ErrNotMigrated means that the schema has no store, or an older one's tables.
	ErrNotMigrated = errors.New("the schema needs a migration")
	// ErrNewerSchema means that the tables are of a version that this one does
	// not know how to work with.
	ErrNewerSchema = errors.New("the schema is of a newer version")
	// ErrNoConnection means that no connection could be had: the server is away,
	// or has none left, or all that the options allow are in use.
	ErrNoConnection = errors.New("no connection to the server")
	// ErrPooler means that the DSN leads to a pooler that Options.Pooler does not
	// speak of.
	ErrPooler = errors.New("a pooler stands before the server")
	// ErrDiskFull means that the server's disk is full.
	ErrDiskFull = errors.New("the server's disk is full")
	// ErrUnconfirmed means that the server stored a change, but stopped waiting
	// for its standby.
	ErrUnconfirmed = errors.New("no standby confirmed the change")
	// ErrWentBack means that the server forgot takes that it had confirmed: an
	// older backup was restored, or a standby took over that had not got them all.
	ErrWentBack = errors.New("the store went back in time")
	// ErrClosed is the cause of what a closed store answers.
	ErrClosed = errors.New("the store is closed")
)

// advice says what an error code of the server means here.
type advice struct {
	sentinel error
	text     string
}

func adviceByCode() map[string]advice {
	return map[string]advice{
		"42501": {ErrRights, "grant the role what it misses, or run the migration as the tables' owner"},
		"25006": {ErrReadOnly, "point the DSN to the primary, or name all hosts in it"},
		"42P01": {ErrNotMigrated, "run `taskring store migrate`"},
		"3F000": {ErrNotMigrated, "run `taskring store migrate`"},
		"53100": {ErrDiskFull, "make room; commits are repeated by themselves"},
		"53300": {ErrNoConnection, "raise the server's max_connections, or lower CommitConns and ReadConns"},
		"57P03": {ErrNoConnection, "the server is starting or stopping"},
		"26000": {ErrPooler, "a pooler forgot a prepared statement: set Options.Pooler"},
		"42P05": {ErrPooler, "a pooler mixed up prepared statements: set Options.Pooler"},
		"08P01": {ErrPooler, "if a pooler refused a parameter of the session, set Options.Pooler"},
	}
}

// explained adds to an error of the server what an operator can do about it.
func explained(err error) error {
	var pg *pgconn.PgError
	if errors.Is(err, pgconn.ErrReadOnlyConnection) {
		return fmt.Errorf("%w: %w: none of the hosts is the primary", ErrReadOnly, err)
	}
	if !errors.As(err, &pg) {
		return err
	}
	if a, ok := adviceByCode()[pg.Code]; ok {
		return fmt.Errorf("%w: %w: %s", a.sentinel, err, a.text)
	}
	return err
}

// resultOf tells what became of a statement that was handed to a connection and
// ended with err.
//
//	error                                     the statement is
//	none                                      stored: the server was heard to be ready again
//	nothing had been sent                     not stored
//	of severity ERROR, whatever its code      not stored: the server rolled it back
//	of severity FATAL: the backend ended      unknown, it may have ended after its commit
//	a broken connection, a deadline here      unknown
//	a standby did not confirm                 unknown, it may be gone after a fail-over
func resultOf(err error) store.Result {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return store.Stored
	case errors.Is(err, ErrUnconfirmed):
		return store.Unknown
	case pgconn.SafeToRetry(err):
		return store.NotStored
	case errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR":
		return store.NotStored
	default:
		return store.Unknown
	}
}

// isOfOneRow reports whether the server refused a statement because of a value
// in it: the others of the same statement would have been stored without it.
func isOfOneRow(err error) bool {
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || len(pg.Code) != 5 {
		return false
	}
	switch pg.Code[:2] {
	case "22", "23", "54": // data, constraint, program limit
		return true
	}
	return false
}

// unconfirmed is the key of a connection's own data under which a warning is
// kept that the wait for a standby was cut short.
const unconfirmed = "unconfirmed"

// noteUnconfirmed keeps the warning of a commit that did not wait for its
// standby: the statement itself succeeds.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Code == "01000" && n.SeverityUnlocalized == "WARNING" {
		conn.CustomData()[unconfirmed] = n.Message
	}
}

// takeUnconfirmed returns the warning as an error, and forgets it.
func takeUnconfirmed(conn *pgx.Conn) error {
	data := conn.PgConn().CustomData()
	said, ok := data[unconfirmed]
	if !ok {
		return nil
	}
	delete(data, unconfirmed)
	return fmt.Errorf("%w: %v", ErrUnconfirmed, said)
}
