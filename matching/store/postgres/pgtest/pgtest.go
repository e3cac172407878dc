// Package pgtest runs a real PostgreSQL server for tests: one cluster in a
// folder of its own, reached by a unix socket, that is started when the first
// test asks for it and ends with the test binary.
//
//	var pg = pgtest.New()
//
//	func TestMain(m *testing.M) {
//		code := m.Run()
//		pg.Close()
//		os.Exit(code)
//	}
//
//	func TestSomething(t *testing.T) {
//		dsn := pg.Database(t) // a new, empty database
//	}
//
// The programs are those of the distribution's package, which `make test`
// installs; without them a test that needs a server fails and says so. The
// server runs as another user when the tests run as root, because it refuses to
// run as root itself. All methods may be called concurrently, but a test that
// stops the server stops it for all.
package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// install says what is to be done where the programs are missing.
const install = "install PostgreSQL 15 or newer and pgbouncer: `.ci/prepare` does on Debian and Ubuntu (packages postgresql and pgbouncer)"

// Server is a PostgreSQL cluster. It is made by [New] and costs nothing before
// its first use.
type Server struct {
	settings []string

	mu struct {
		sync.Mutex
		bin, dir  string
		account   *syscall.Credential // nil: our own
		err       error               // why it cannot run, once tried
		postgres  *exec.Cmd           // nil: not running
		poolers   []*exec.Cmd
		databases int
	}
}

// New returns a server that is started when it is first needed. Settings are
// lines of postgresql.conf on top of the defaults, such as "max_connections=20".
func New(settings ...string) *Server { return &Server{settings: settings} }

// Database makes a new, empty database and returns the DSN of its owner, who may
// do everything.
func (s *Server) Database(tb testing.TB) string {
	tb.Helper()
	s.ensure(tb)
	s.mu.Lock()
	s.mu.databases++
	name := fmt.Sprintf("test%d", s.mu.databases)
	s.mu.Unlock()
	s.Exec(tb, "CREATE DATABASE "+name)
	return s.DSN(name)
}

// DSN returns how a database is reached as the owner of the cluster.
func (s *Server) DSN(database string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return "host=" + s.mu.dir + " port=" + port + " user=owner dbname=" + database
}

// Exec runs statements as the owner of the cluster, each on its own.
func (s *Server) Exec(tb testing.TB, statements ...string) {
	tb.Helper()
	s.ensure(tb)
	if err := run(tb.Context(), s.DSN("postgres"), statements); err != nil {
		tb.Fatalf("%v\n%s", err, s.Log())
	}
}

func run(ctx context.Context, dsn string, statements []string) (err error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	return nil
}

// Dir is the folder of the server's socket, .s.PGSQL.5432, once it was used.
func (s *Server) Dir() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.dir
}

// PID is the process of the running server, the parent of its backends, or 0.
func (s *Server) PID() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.postgres == nil {
		return 0
	}
	return s.mu.postgres.Process.Pid
}

// Log returns the end of the server's log.
func (s *Server) Log() string { return tail(filepath.Join(s.Dir(), "log")) }

// tail returns the end of a file, or why there is none.
func tail(path string) string {
	const most = 4 << 10
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Start starts the server again after Stop. It returns when the server takes
// connections.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	s.ensure(tb)
}

// Stop ends the server and waits for it: with syscall.SIGTERM when all clients
// left, with SIGINT after their transactions were broken off, with SIGQUIT at
// once, as in a crash.
func (s *Server) Stop(tb testing.TB, how syscall.Signal) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stopLocked(how); err != nil {
		tb.Fatal(err)
	}
}

// Close ends the server and removes its folder.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, pooler := range s.mu.poolers {
		errs = append(errs, ended(pooler, syscall.SIGTERM))
	}
	s.mu.poolers = nil
	errs = append(errs, s.stopLocked(syscall.SIGQUIT))
	if s.mu.dir != "" {
		errs = append(errs, os.RemoveAll(s.mu.dir))
	}
	return errors.Join(errs...)
}

// CPU is the processor time that the server and its backends have used so far.
func (s *Server) CPU() (time.Duration, error) {
	parent := s.PID()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("look for backends: %w", err)
	}
	const ticksPerSecond = 100 // of every Linux
	var ticks int64
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended meanwhile
		}
		// pid (name) state ppid ..., where the name may hold anything
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid := filepath.Base(filepath.Dir(path))
		switch {
		case len(fields) < 15:
		case pid == strconv.Itoa(parent): // with its children that ended
			ticks += sum(fields[11:15])
		case fields[1] == strconv.Itoa(parent):
			ticks += sum(fields[11:13])
		}
	}
	return time.Duration(ticks) * time.Second / ticksPerSecond, nil
}

func sum(fields []string) (total int64) {
	for _, f := range fields {
		n, _ := strconv.ParseInt(f, 10, 64) // the kernel writes numbers
		total += n
	}
	return total
}

func (s *Server) ensure(tb testing.TB) {
	tb.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.dir == "" && s.mu.err == nil {
		s.mu.err = s.createLocked()
	}
	if s.mu.err == nil && s.mu.postgres == nil {
		s.mu.err = s.startLocked()
	}
	if s.mu.err != nil {
		tb.Fatalf("PostgreSQL for tests: %v", s.mu.err)
	}
}

// newest returns the folder of the programs of the newest version that is
// installed. It does not look in PATH: some systems link the programs there,
// others do not.
func newest() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 for what is no version
		return n
	}
	slices.SortFunc(found, func(a, b string) int { return version(b) - version(a) })
	if len(found) == 0 || version(found[0]) < 15 {
		return "", errors.New("/usr/lib/postgresql has no version 15 or newer: " + install)
	}
	return filepath.Dir(found[0]), nil
}

// account returns who the server runs as: nobody special, or when we are root
// the user that the distribution made for it.
func account() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil //nolint:nilnil // nil is what SysProcAttr takes for "as we are"
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, fmt.Errorf("user %s: %w", name, err)
		}
		return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is neither a user postgres nor nobody")
}

// port is the number in the name of the socket; nothing listens on the network.
const port = "5432"

func (s *Server) createLocked() error {
	var err error
	if s.mu.bin, err = newest(); err != nil {
		return err
	}
	if s.mu.account, err = account(); err != nil {
		return err
	}
	// Not below a test's own folder, which others may not enter; and the path of
	// a socket has at most 107 bytes.
	if s.mu.dir, err = os.MkdirTemp("", "pgtest"); err != nil {
		return fmt.Errorf("folder of the server: %w", err)
	}
	if s.mu.account != nil {
		if err := os.Chown(s.mu.dir, int(s.mu.account.Uid), int(s.mu.account.Gid)); err != nil {
			return fmt.Errorf("folder of the server: %w", err)
		}
	}
	initdb := s.commandLocked(filepath.Join(s.mu.bin, "initdb"),
		"--no-sync", "--auth=trust", "--encoding=UTF8", "--no-locale", "--username=owner", "--pgdata="+filepath.Join(s.mu.dir, "data"))
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

// commandLocked prepares a program of the server's user. It dies with us: the
// kernel ends it when the test binary is killed.
func (s *Server) commandLocked(path string, args ...string) *exec.Cmd {
	//nolint:noctx,gosec // it lives until Close, not as long as one test; paths are the distribution's
	cmd := exec.Command(path, args...)
	cmd.Dir = s.mu.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.mu.account, Pdeathsig: syscall.SIGQUIT}
	return cmd
}

func (s *Server) startLocked() error {
	args := append(make([]string, 0, 8+2*len(s.settings)), "-D", filepath.Join(s.mu.dir, "data"), "-k", s.mu.dir, "-p", port, "-c", "listen_addresses=")
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd := s.commandLocked(filepath.Join(s.mu.bin, "postgres"), args...)
	if err := startLogged(cmd, filepath.Join(s.mu.dir, "log")); err != nil {
		return err
	}
	s.mu.postgres = cmd
	dsn := "host=" + s.mu.dir + " port=" + port + " user=owner dbname=postgres"
	return awaited("the server", func(ctx context.Context) error { return run(ctx, dsn, []string{"SELECT 1"}) })
}

// startLogged starts a program with its output in a file: a pipe would need a
// goroutine that outlives the tests.
func startLogged(cmd *exec.Cmd, path string) error {
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("log of %s: %w", cmd.Path, err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	return errors.Join(cmd.Start(), log.Close())
}

// awaited tries until it works, for at most half a minute.
func awaited(what string, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after half a minute: %w", what, err)
		}
	}
}

func (s *Server) stopLocked(how syscall.Signal) error {
	cmd := s.mu.postgres
	if cmd == nil {
		return nil
	}
	s.mu.postgres = nil
	return ended(cmd, how)
}

// ended signals a program and waits for its end, which is no error whatever it
// says.
func ended(cmd *exec.Cmd, how syscall.Signal) error {
	if err := cmd.Process.Signal(how); err != nil {
		return fmt.Errorf("stop %s: %w", cmd.Path, err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("wait for %s: %w", cmd.Path, err)
	}
	return nil
}
