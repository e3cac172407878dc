package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskring/taskring/matching/store/postgres/pgtest"
	"github.com/taskring/taskring/matching/task"
)

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]Options{
		"DSN":               {},
		"schema":            {DSN: "host=x", Schema: strings.Repeat("s", 64)},
		"connections":       {DSN: "host=x", CommitConns: -1},
		"connect timeout":   {DSN: "host=x", ConnectTimeout: -1},
		"statement timeout": {DSN: "host=x", StatementTimeout: time.Microsecond},
		"lock timeout":      {DSN: "host=x", LockTimeout: -1},
		"commit deadline":   {DSN: "host=x", CommitDeadline: -1},
	} {
		if _, err := Open(context.Background(), o); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Open(%+v) = %v, want an error about the %s", o, err, name)
		}
	}
	_, err := Open(context.Background(), Options{DSN: "postgres://me:secret@host:x/"})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an error about the DSN shows the password: %v", err)
	}
}

func TestServerIsChecked(t *testing.T) {
	good := server{version: 150_000, fsync: "on", synchronousCommit: "on", readOnly: "off"}
	with := func(change func(*server)) server { s := good; change(&s); return s }
	for _, tt := range []struct {
		server server
		want   error
		text   string
	}{
		{good, nil, ""},
		{with(func(s *server) { s.synchronousCommit = "remote_apply" }), nil, ""},
		{with(func(s *server) { s.version = 140_023 }), ErrServerTooOld, "14.23"},
		{with(func(s *server) { s.fsync = "off" }), ErrNotDurable, "fsync = on"},
		{with(func(s *server) { s.synchronousCommit = "off" }), ErrNotDurable, "synchronous_commit = on"},
		{with(func(s *server) { s.readOnly = "on" }), ErrReadOnly, "primary"},
	} {
		err := tt.server.check()
		if !errors.Is(err, tt.want) || (err != nil && !strings.Contains(err.Error(), tt.text)) {
			t.Errorf("check of %+v = %v, want %v", tt.server, err, tt.want)
		}
	}
}

// refused opens the store and looks at the error.
func refused(t *testing.T, o Options, want error, text string) {
	t.Helper()
	s, err := Open(context.Background(), o)
	if err == nil {
		closeStore(t, s)
	}
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Errorf("Open = %v, want %v with %q", err, want, text)
	}
}

func TestUnfitServersAreRefused(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	database := o.DSN[strings.LastIndex(o.DSN, "=")+1:]

	pg.Exec(t, "ALTER DATABASE "+database+" SET synchronous_commit = off")
	refused(t, o, ErrNotDurable, "synchronous_commit")
	pg.Exec(t, "ALTER DATABASE "+database+" RESET synchronous_commit", "ALTER DATABASE "+database+" SET default_transaction_read_only = on")
	refused(t, o, ErrReadOnly, "primary")
	pair := o
	pair.DSN = strings.Replace(o.DSN, "port=5432", "port=1,5432", 1)
	pair.DSN = strings.Replace(pair.DSN, pg.Dir(), pg.Dir()+","+pg.Dir(), 1)
	refused(t, pair, ErrReadOnly, "none of the hosts")
	pg.Exec(t, "ALTER DATABASE "+database+" RESET default_transaction_read_only")
	closeStore(t, open(t, pair)) // the second host is the one

	pg.Exec(t, "CREATE ROLE guest LOGIN")
	guest := o
	guest.DSN = strings.Replace(o.DSN, "user=owner", "user=guest", 1)
	refused(t, guest, ErrRights, "grant")
	pg.Exec(t, "ALTER ROLE guest SUPERUSER")
	closeStore(t, open(t, guest))

	nowhere := o
	nowhere.DSN += " port=1"
	refused(t, nowhere, ErrNoConnection, "connect")
}

func TestMissingRightsAreNamed(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	migrate(t, o)
	s := open(t, o)
	for _, sql := range []string{
		"CREATE ROLE clerk LOGIN", "GRANT USAGE ON SCHEMA {s} TO clerk",
		"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {s} TO clerk",
	} {
		if _, err := s.rest.Exec(context.Background(), inSchema(o.Schema, sql)); err != nil {
			t.Fatal(err)
		}
	}
	o.DSN = strings.Replace(o.DSN, "user=owner", "user=clerk", 1)
	closeStore(t, open(t, o))
	if _, err := s.rest.Exec(context.Background(), inSchema(o.Schema, "REVOKE DELETE ON {s}.task FROM clerk")); err != nil {
		t.Fatal(err)
	}
	refused(t, o, ErrRights, "DELETE ON")
}

func TestServerWithoutFsyncIsRefused(t *testing.T) {
	careless := pgtest.New("fsync=off")
	defer closeServer(t, careless)
	o := inNewSchema(testOptions(careless.Database(t)))
	if _, err := Migrate(context.Background(), o); !errors.Is(err, ErrNotDurable) {
		t.Errorf("Migrate = %v, want ErrNotDurable", err)
	}
	refused(t, o, ErrNotDurable, "fsync = on")
}

func TestNoConnectionLeft(t *testing.T) {
	small := pgtest.New("max_connections=5", "superuser_reserved_connections=0", "max_wal_senders=0")
	defer closeServer(t, small)
	o := inNewSchema(testOptions(small.Database(t)))
	migrate(t, o)
	s := open(t, o) // one connection
	o.ReadConns = 5
	greedy := open(t, o)
	var held []interface{ Release() }
	var err error
	for range o.ReadConns {
		conn, acquireErr := greedy.connect(context.Background(), greedy.rest)
		if acquireErr != nil {
			err = acquireErr
			break
		}
		held = append(held, conn)
	}
	if !errors.Is(err, ErrNoConnection) || !strings.Contains(err.Error(), "max_connections") {
		t.Errorf("the connection too many: error %v", err)
	}
	if o := result(s, put(orders.Partition(0), 1, 1)); !errors.Is(o.Err, ErrNoConnection) {
		t.Errorf("commit without a connection = %v, %v", o.Result, o.Err)
	}
	for _, conn := range held {
		conn.Release()
	}
}

func TestMigrate(t *testing.T) {
	ctx := context.Background()
	o := inNewSchema(testOptions(pg.Database(t)))
	before, err := Status(ctx, o)
	if err != nil || before.Version != 0 || !slices.Equal(before.Pending, []string{"0001_tables"}) || before.Server == "" {
		t.Errorf("status of an empty schema = %+v, %v", before, err)
	}
	refused(t, o, ErrNotMigrated, "taskring store migrate")

	var wg sync.WaitGroup // several nodes at once
	states := make([]State, 4)
	for i := range states {
		wg.Go(func() {
			var err error
			if states[i], err = Migrate(ctx, o); err != nil {
				t.Errorf("migrate: %v", err)
			}
		})
	}
	wg.Wait()
	for _, state := range states {
		if state.Version != 1 || state.ID == (task.StoreID{}) || state.ID != states[0].ID || len(state.Pending) != 0 {
			t.Errorf("state after migration = %+v", state)
		}
	}
	s := open(t, o)
	if s.ID() != states[0].ID {
		t.Errorf("id = %x, want %x", s.ID(), states[0].ID)
	}

	set := func(version, oldest int) {
		t.Helper()
		if _, err := s.rest.Exec(ctx, inSchema(o.Schema, "UPDATE {s}.format SET version = $1, oldest = $2"), version, oldest); err != nil {
			t.Fatal(err)
		}
	}
	set(2, 1) // newer, but made for a rolling restart
	closeStore(t, open(t, o))
	if state, err := Migrate(ctx, o); err != nil || state.Version != 2 {
		t.Errorf("migrate of a newer schema = %+v, %v", state, err)
	}
	set(3, 2)
	refused(t, o, ErrNewerSchema, "version 3")
	if _, err := Migrate(ctx, o); !errors.Is(err, ErrNewerSchema) {
		t.Errorf("migrate of a newer schema: %v", err)
	}
	set(0, 0)
	refused(t, o, ErrNotMigrated, "store migrate")
}

// TestMigrateInPreparedSchema: an owner of the database may make the schema, and
// give it to a role that may make nothing else.
func TestMigrateInPreparedSchema(t *testing.T) {
	o := inNewSchema(testOptions(pg.Database(t)))
	admin := open(t, func() Options { other := inNewSchema(o); migrate(t, other); return other }())
	for _, sql := range []string{"CREATE ROLE tenant LOGIN", "CREATE SCHEMA {s} AUTHORIZATION tenant"} {
		if _, err := admin.rest.Exec(context.Background(), inSchema(o.Schema, sql)); err != nil {
			t.Fatal(err)
		}
	}
	o.DSN = strings.Replace(o.DSN, "user=owner", "user=tenant", 1)
	migrate(t, o)
	s := open(t, o)
	acquire(t, s, anna, orders.Partition(0))
	other := inNewSchema(o)
	if _, err := Migrate(context.Background(), other); !errors.Is(err, ErrRights) {
		t.Errorf("migrate without the right to make a schema: %v", err)
	}
}
