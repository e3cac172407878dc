package child

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// standIn writes a shell script that plays the server.
func standIn(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "server")
	//nolint:gosec // it has to be run
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// stopBound is more than any of these needs.
const stopBound = 20 * time.Second

// ready says that the server is.
const ready = `echo '{"grpc_addr":"127.0.0.1:1","http_addr":"127.0.0.1:2","pid":'$$'}'` + "\n"

func TestStartAndStop(t *testing.T) {
	s, err := Start(t.Context(), standIn(t, `echo "$@" >&2; trap 'exit 0' TERM; `+ready+`while :; do sleep 0.01; done`), "--data-dir", "x")
	if err != nil {
		t.Fatal(err)
	}
	if s.GRPCAddr != "127.0.0.1:1" || s.HTTPAddr != "127.0.0.1:2" || s.PID != s.cmd.Process.Pid {
		t.Errorf("the server said %+v", s.Ready)
	}
	if err := s.Stop(stopBound); err != nil {
		t.Error(err)
	}
	want := "server --data-dir x --grpc-addr 127.0.0.1:0 --http-addr 127.0.0.1:0\n"
	if s.Log() != want {
		t.Errorf("it was called with %q, want %q", s.Log(), want)
	}
}

func TestServerThatEndsEarly(t *testing.T) {
	_, err := Start(t.Context(), standIn(t, "echo the disk is gone >&2; exit 3"))
	if err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Errorf("got %v, want the end of the log", err)
	}
}

func TestServerThatMumbles(t *testing.T) {
	if _, err := Start(t.Context(), standIn(t, "echo hello; exec sleep 1000")); err == nil {
		t.Error("a server that says no JSON passes for ready")
	}
}

func TestStopOfOneThatFails(t *testing.T) {
	s, err := Start(t.Context(), standIn(t, `trap 'echo stuck >&2; exit 5' TERM; `+ready+`while :; do sleep 0.01; done`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(stopBound); err == nil || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("got %v, want the exit status and the log", err)
	}
}

func TestStopOfOneThatDoesNot(t *testing.T) {
	s, err := Start(t.Context(), standIn(t, `trap '' TERM; `+ready+`while :; do sleep 0.01; done`))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(stopBound / 100); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("got %v, want that it was killed", err)
	}
	s.Kill()
}
