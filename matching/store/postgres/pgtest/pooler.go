package pgtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bouncer is where the distribution installs pgbouncer.
const bouncer = "/usr/sbin/pgbouncer"

// Pooler starts a pgbouncer before the server that gives a server connection
// away after each transaction, and returns what takes the place of "host=..." in
// a DSN. It ends with the server.
func (s *Server) Pooler(tb testing.TB, settings ...string) string {
	tb.Helper()
	s.ensure(tb)
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := os.Stat(bouncer); err != nil {
		tb.Fatalf("%v: %s", err, install)
	}
	dir, err := os.MkdirTemp(s.mu.dir, "pool") //nolint:usetesting // its user may not enter a test's own folder
	if err != nil {
		tb.Fatal(err)
	}
	config := filepath.Join(dir, "pgbouncer.ini")
	users := filepath.Join(dir, "users")
	lines := append([]string{
		"[databases]", "* = host=" + s.mu.dir + " port=" + port,
		"[pgbouncer]", "pool_mode = transaction", "listen_addr =", "listen_port = " + port,
		"unix_socket_dir = " + dir, "auth_type = trust", "auth_file = " + users, "default_pool_size = 4",
	}, settings...)
	for path, text := range map[string]string{config: strings.Join(lines, "\n") + "\n", users: "\"owner\" \"\"\n"} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
			tb.Fatal(err)
		}
	}
	if s.mu.account != nil {
		if err := os.Chown(dir, int(s.mu.account.Uid), int(s.mu.account.Gid)); err != nil {
			tb.Fatal(err)
		}
	}
	cmd := s.commandLocked(bouncer, config)
	if err := startLogged(cmd, filepath.Join(s.mu.dir, "pooler.log")); err != nil {
		tb.Fatal(err)
	}
	s.mu.poolers = append(s.mu.poolers, cmd)
	host := "host=" + dir
	if err := awaited("pgbouncer", func(ctx context.Context) error {
		return run(ctx, fmt.Sprintf("%s port=%s user=owner dbname=postgres default_query_exec_mode=exec", host, port), []string{"SELECT 1"})
	}); err != nil {
		tb.Fatalf("%v\n%s", err, tail(filepath.Join(s.mu.dir, "pooler.log")))
	}
	return host
}
