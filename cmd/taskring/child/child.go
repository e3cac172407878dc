// Package child runs a taskring server of one's own as a child process: the
// benchmark measures one, the process tests kill them.
package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/taskring/taskring/cmd/taskring/serve"
)

// startTimeout bounds how long a server may take to become ready, the recovery
// of its store included.
const startTimeout = time.Minute

// logEnd is how much of the end of the server's log is kept, in bytes.
const logEnd = 8 << 10

// Server is a server process. Only one goroutine may end it.
type Server struct {
	// Ready is what the server said when it was ready.
	serve.Ready

	cmd *exec.Cmd
	log *logTail
}

// Start starts `binary server` with the arguments and waits until it is ready.
// Without an --grpc-addr and --http-addr among them it listens on free ports.
func Start(ctx context.Context, binary string, args ...string) (*Server, error) {
	return start(ctx, binary, append([]string{"server"}, args...))
}

// StartFrontend is Start for `binary frontend`.
func StartFrontend(ctx context.Context, binary string, args ...string) (*Server, error) {
	return start(ctx, binary, append([]string{"frontend"}, args...))
}

func start(ctx context.Context, binary string, args []string) (*Server, error) {
	given := strings.Join(args, " ")
	for _, address := range []string{"--grpc-addr", "--http-addr"} {
		if !strings.Contains(given, address) {
			args = append(args, address, "127.0.0.1:0")
		}
	}
	// The server outlives the context, which bounds its start only.
	//nolint:gosec // which binary to run is for the caller to say
	cmd := exec.CommandContext(context.WithoutCancel(ctx), binary, args...)
	s := &Server{cmd: cmd, log: &logTail{}}
	s.cmd.Stderr = s.log
	// A signal to this process's group, as by Ctrl-C, is not the server's.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("the server's output: %w", err)
	}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the server: %w", err)
	}
	if err := s.awaitReady(ctx, stdout); err != nil {
		s.Kill()
		return nil, fmt.Errorf("the server did not become ready: %w; the end of its log:\n%s", err, s.log)
	}
	return s, nil
}

// Kill ends the server as kill -9 does and waits for its end. It may be called
// again.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended already
	_ = s.cmd.Wait()         // says that it was killed
}

// Stop asks the server to end, waits for it and returns how it ended. What does
// not end within the timeout is killed, which is an error.
func (s *Server) Stop(timeout time.Duration) error {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("asking the server to stop: %w", err)
	}
	kill := time.AfterFunc(timeout, func() { _ = s.cmd.Process.Kill() })
	err := s.cmd.Wait()
	if !kill.Stop() {
		return fmt.Errorf("the server did not stop within %v and was killed", timeout)
	}
	if err != nil {
		return fmt.Errorf("the server ended with %w; the end of its log:\n%s", err, s.log)
	}
	return nil
}

// Log returns the end of the server's log.
func (s *Server) Log() string { return s.log.String() }

func (s *Server) awaitReady(ctx context.Context, stdout io.Reader) error {
	read := make(chan error, 1)
	go func() { // ends with the line, or with the server, which is killed when nobody waits any more
		line, err := bufio.NewReader(stdout).ReadBytes('\n')
		if err == nil {
			err = json.Unmarshal(line, &s.Ready)
		}
		read <- err
	}()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	select {
	case err := <-read:
		if errors.Is(err, io.EOF) {
			return errors.New("it ended")
		}
		return err
	case <-ctx.Done():
		s.Kill()
		return errors.Join(ctx.Err(), <-read) // the read ends with the server
	}
}

// logTail keeps the end of a log.
type logTail struct {
	mu  sync.Mutex
	end []byte
}

// Write never fails.
func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end = append(l.end, p...)
	if over := len(l.end) - logEnd; over > 0 {
		l.end = append(l.end[:0], l.end[over:]...)
	}
	return len(p), nil
}

// String returns what is kept.
func (l *logTail) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.end)
}
