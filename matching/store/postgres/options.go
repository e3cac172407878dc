package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Options configures a store. Zero fields take their default.
type Options struct {
	// DSN says where the server is, as a URL or as words: see the manual of
	// libpq. Several hosts may be named; the one that takes writes is used.
	DSN string
	// Schema is the schema that holds the store's tables; default "taskring".
	// Several stores may live in one database under different schemas.
	Schema string
	// Pooler says that DSN leads to a pooler which gives a server connection away
	// after each transaction. See "Behind a pooler" in the package doc.
	Pooler bool
	// CommitConns bounds the connections that commit; default 4. More than one
	// for each commit lane is of no use.
	CommitConns int
	// ReadConns bounds the connections of everything else; default 4.
	ReadConns int
	// ConnectTimeout bounds the making of one connection; default 5 s.
	ConnectTimeout time.Duration
	// StatementTimeout bounds one statement, on the server and, a second later,
	// here; default 10 s. A caller's earlier deadline goes before it.
	StatementTimeout time.Duration
	// LockTimeout bounds the wait for a lock; default 5 s.
	LockTimeout time.Duration
	// CommitDeadline is how long a commit may take before Healthy complains;
	// default 5 s.
	CommitDeadline time.Duration
	// VacuumAfter is after how many deleted rows of one table the store vacuums
	// it; default 50,000, negative leaves it to autovacuum.
	VacuumAfter int
	// Logger takes what the store has to say; the default writes text to
	// standard error.
	Logger *slog.Logger
}

func (o *Options) ensureDefaults() error {
	if o.Schema == "" {
		o.Schema = "taskring"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	if o.VacuumAfter == 0 {
		o.VacuumAfter = 50_000
	}
	for _, n := range []*int{&o.CommitConns, &o.ReadConns} {
		if *n == 0 {
			*n = 4
		}
	}
	for d, standard := range map[*time.Duration]time.Duration{
		&o.ConnectTimeout:   5 * time.Second,
		&o.StatementTimeout: 10 * time.Second,
		&o.LockTimeout:      5 * time.Second,
		&o.CommitDeadline:   5 * time.Second,
	} {
		if *d == 0 {
			*d = standard
		}
	}
	return o.validate()
}

// maxSchema is how long PostgreSQL lets a name be; a longer one is cut silently.
const maxSchema = 63

func (o *Options) validate() error {
	var errs []error
	if o.DSN == "" {
		errs = append(errs, errors.New("the store needs a DSN, for example postgres://USER:PASSWORD@HOST/DATABASE"))
	}
	if len(o.Schema) > maxSchema {
		errs = append(errs, fmt.Errorf("schema %q has %d bytes, the limit is %d", o.Schema, len(o.Schema), maxSchema))
	}
	if o.CommitConns < 1 || o.ReadConns < 1 || o.CommitConns > math.MaxInt32 || o.ReadConns > math.MaxInt32 {
		errs = append(errs, fmt.Errorf("%d connections to commit and %d to read: at least 1 of each is needed", o.CommitConns, o.ReadConns))
	}
	for name, d := range map[string]time.Duration{
		"connect timeout": o.ConnectTimeout, "statement timeout": o.StatementTimeout,
		"lock timeout": o.LockTimeout, "commit deadline": o.CommitDeadline,
	} {
		if d < time.Millisecond {
			errs = append(errs, fmt.Errorf("%s is %s, the least is 1ms", name, d))
		}
	}
	return errors.Join(errs...)
}

// planParams are parameters that make the server plan each statement once, and by its indexes: see
// "Plans" in the package doc.
func planParams() map[string]string {
	return map[string]string{
		"plan_cache_mode":   "force_generic_plan",
		"enable_seqscan":    "off",
		"enable_hashjoin":   "off",
		"enable_mergejoin":  "off",
		"enable_bitmapscan": "off",
		"jit":               "off",
	}
}

// sessionParams are set in each connection that is the store's own.
func (o *Options) sessionParams() map[string]string {
	millis := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	params := planParams()
	maps.Copy(params, map[string]string{
		"statement_timeout": millis(o.StatementTimeout),
		"lock_timeout":      millis(o.LockTimeout),
		// A connection whose other end vanished may hold row locks; so long at
		// most.
		"tcp_keepalives_idle":     "10",
		"tcp_keepalives_interval": "3",
		"tcp_keepalives_count":    "3",
	})
	return params
}

// connConfig reads the DSN. Parameters that it names itself win.
func (o *Options) connConfig(params map[string]string) (*pgx.ConnConfig, error) {
	c, err := pgx.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("the DSN of the store: %w", err) // pgx hides the password
	}
	o.adjust(c, params)
	return c, nil
}

func (o *Options) adjust(c *pgx.ConnConfig, params map[string]string) {
	if o.Pooler {
		params = nil // they would go to whoever gets the server connection next
		c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
	for name, value := range params {
		if _, set := c.RuntimeParams[name]; !set {
			c.RuntimeParams[name] = value
		}
	}
	if _, set := c.RuntimeParams["application_name"]; !set {
		c.RuntimeParams["application_name"] = "taskring"
	}
	if len(c.Fallbacks) > 0 && c.ValidateConnect == nil {
		c.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	c.ConnectTimeout = o.ConnectTimeout
	c.OnNotice = noteUnconfirmed
	c.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
		return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: cancelGrace}
	}
}

// cancelGrace is how long after its context ended a statement may still tell
// its outcome before the connection is given up.
const cancelGrace = time.Second

func (o *Options) poolConfig(conns int) (*pgxpool.Config, error) {
	p, err := pgxpool.ParseConfig(o.DSN)
	if err != nil {
		return nil, fmt.Errorf("the DSN of the store: %w", err) // pgx hides the password
	}
	o.adjust(p.ConnConfig, o.sessionParams())
	p.MaxConns = int32(conns)
	p.MinConns = 0
	p.MaxConnLifetime = time.Hour
	p.MaxConnLifetimeJitter = 10 * time.Minute
	p.MaxConnIdleTime = 10 * time.Minute
	p.PingTimeout = o.ConnectTimeout
	p.AfterConnect = checkServer
	return p, nil
}
