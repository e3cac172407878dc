package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// oldestServer is the oldest version that the store works with, as the server
// counts: 15.0.
const oldestServer = 150_000

// server is what a connection tells of the server behind it.
type server struct {
	version           int // 150018 is 15.18
	fsync             string
	synchronousCommit string
	readOnly          string
}

const askServer = `SELECT current_setting('server_version_num')::int4, current_setting('fsync'),
 current_setting('synchronous_commit'), current_setting('transaction_read_only')`

// checkServer refuses a connection to a server that the store may not use.
func checkServer(ctx context.Context, conn *pgx.Conn) error {
	var s server
	err := conn.QueryRow(ctx, askServer).Scan(&s.version, &s.fsync, &s.synchronousCommit, &s.readOnly)
	if err != nil {
		return explained(err)
	}
	return s.check()
}

// check reports every reason why the server may not be used.
func (s server) check() error {
	var errs []error
	if s.version < oldestServer {
		errs = append(errs, fmt.Errorf("%w: it is PostgreSQL %d.%d, the store needs 15 or newer",
			ErrServerTooOld, s.version/10_000, s.version%10_000))
	}
	if s.fsync == "off" {
		errs = append(errs, fmt.Errorf("%w: its fsync is off; set fsync = on", ErrNotDurable))
	}
	if s.synchronousCommit == "off" {
		errs = append(errs, fmt.Errorf("%w: its synchronous_commit is off for this role and database; set synchronous_commit = on", ErrNotDurable))
	}
	if s.readOnly == "on" {
		errs = append(errs, fmt.Errorf("%w: it is a standby or default_transaction_read_only is on; point the DSN to the primary, or name all hosts in it", ErrReadOnly))
	}
	return errors.Join(errs...)
}

// rights are what the role has to be allowed, by table.
func rights() map[string][]string {
	return map[string][]string{
		"format":    {"SELECT"},
		"partition": {"SELECT", "INSERT", "UPDATE"},
		"settings":  {"SELECT", "INSERT", "UPDATE"},
		"task":      {"SELECT", "INSERT", "DELETE"},
		"scheduled": {"SELECT", "INSERT", "UPDATE", "DELETE"},
		"lease":     {"SELECT", "INSERT", "UPDATE", "DELETE"},
		"dead":      {"SELECT", "INSERT", "UPDATE", "DELETE"},
		"request":   {"SELECT", "INSERT", "UPDATE", "DELETE"},
	}
}

const askRights = `SELECT t, p FROM unnest($1::text[], $2::text[]) w(t, p) WHERE NOT has_table_privilege(t, p) ORDER BY t, p`

// checkRights asks before the first task is lost for the want of a right.
func checkRights(ctx context.Context, conn *pgx.Conn, schema string) error {
	var tables, verbs []string
	for table, needed := range rights() {
		for _, verb := range needed {
			tables = append(tables, quoted(schema)+"."+table)
			verbs = append(verbs, verb)
		}
	}
	rows, err := conn.Query(ctx, askRights, tables, verbs)
	if err != nil {
		return explained(err)
	}
	missing, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (string, error) {
		var table, verb string
		if err := r.Scan(&table, &verb); err != nil {
			return "", fmt.Errorf("a missing right: %w", err)
		}
		return verb + " ON " + table, nil
	})
	if err != nil {
		return explained(err)
	}
	if len(missing) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %q misses %q; GRANT them to it", ErrRights, conn.Config().User, missing)
}

// quoted makes an identifier of a name, whatever it holds.
func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
