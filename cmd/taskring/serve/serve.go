// Package serve is `taskring server`: one matching node with its embedded store,
// its routing client and its operator's endpoints.
//
// The parts meet here and only here: the node gets, as its handler of requests
// that name no partition, a routing client whose calls to this very node are
// plain function calls.
//
//	gRPC --> node --- partition is set --------------> engine
//	           \----- no partition --> client --> (Direct) --/
package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/dynamic"
	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/logs"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/matching"
	"github.com/taskring/taskring/matching/matchingpb"
)

const serverLong = `Run a node: it takes tasks over gRPC, keeps them in its data directory and
hands them to workers.

When the node is ready it prints one line of JSON on standard output:
{"grpc_addr":...,"http_addr":...,"pid":...}. The log goes to standard error.
The HTTP address serves /livez, /readyz and /metrics. Port 0 takes a free port.

SIGINT and SIGTERM: the node answers what runs, ends waiting polls, stores what
is decided and ends, all within --shutdown-timeout. A second signal ends it at
once; what was acknowledged is safe in any case. So does the first one while the
store is still being opened.

Everything else is tuned while the node runs, by the file of --dynamic-config:
see docs/configuration.md, and ` + "`taskring config`" + ` to check it.

Each flag can be given as an environment variable; the flag wins.`

// serving is one run of `server`.
type serving struct {
	config          matching.Config
	reflection      bool
	shutdownTimeout time.Duration
	logs            logs.Flags
	dynamic         dynamic.Flags
}

// Ready is the line that a ready server prints.
type Ready struct {
	GRPCAddr string `json:"grpc_addr"`
	HTTPAddr string `json:"http_addr"`
	PID      int    `json:"pid"`
}

// Command returns `taskring server`, of a version of the software.
func Command(version string) *cobra.Command {
	var s serving
	s.config.Version = version
	cmd := &cobra.Command{
		Use:     "server",
		Short:   "Run a node that takes tasks, keeps them and hands them to workers",
		Long:    serverLong,
		Example: "  taskring server --data-dir /var/lib/taskring --grpc-addr 0.0.0.0:7233",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&s.config.DataDir, "data-dir", matching.DefaultDataDir, "directory of the store; it is made when missing")
	flags.StringVar(&s.config.GRPCAddr, "grpc-addr", matching.DefaultGRPCAddr, "HOST:PORT of the service; with 0.0.0.0 or [::] clients are told the host's name")
	flags.StringVar(&s.config.HTTPAddr, "http-addr", matching.DefaultHTTPAddr, "HOST:PORT of /livez, /readyz and /metrics")
	flags.StringVar(&s.config.Name, "node-name", "", "stable name of the node; the host's name when not given")
	flags.DurationVar(&s.shutdownTimeout, "shutdown-timeout", matching.DefaultStopTimeout, "how long a node that is told to stop may take")
	flags.BoolVar(&s.reflection, "reflection", true, "serve gRPC reflection, for tools such as grpcurl")
	env.Bind(flags, "data-dir", "grpc-addr", "http-addr", "node-name", "shutdown-timeout", "reflection")
	s.dynamic.Add(cmd)
	s.logs.Add(cmd)
	return cmd
}

func (s *serving) run(cmd *cobra.Command) error {
	logger, err := s.logs.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	for flag, address := range map[string]string{"--grpc-addr": s.config.GRPCAddr, "--http-addr": s.config.HTTPAddr} {
		if err := remote.CheckListen(flag, address); err != nil {
			return err
		}
	}
	if s.shutdownTimeout <= 0 {
		return exit.Usagef("--shutdown-timeout %v has to be positive", s.shutdownTimeout)
	}
	s.config.Logger = logger
	s.config.NoReflection = !s.reflection
	s.config.DynamicConfig = matching.DynamicConfig{
		Path: s.dynamic.Path, StartOnDefaults: s.dynamic.StartOnDefaults(), Registry: dynamic.Registry(),
	}
	node, err := await(cmd.Context(), func() (*matching.Node, error) { return matching.New(s.config) })
	if cmd.Context().Err() != nil && node == nil {
		logger.Info("a signal ends the node before it was ready")
		return nil
	}
	if err != nil {
		return s.explain(err)
	}
	router, err := newRouter(node, logger)
	if err == nil {
		// After the node: it answers the calls that run, and some run in here.
		defer router.Stop()
		err = s.serve(cmd, node, logger)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), s.shutdownTimeout)
	defer cancel()
	return errors.Join(err, node.Stop(ctx))
}

// await returns what open returns, or nothing when the context ends first: opening a
// store takes as long as its recovery, and what is being opened may be left to
// the end of the process at any time.
func await(ctx context.Context, open func() (*matching.Node, error)) (*matching.Node, error) {
	type result struct {
		node *matching.Node
		err  error
	}
	results := make(chan result, 1)
	go func() {
		node, err := open()
		results <- result{node, err}
	}()
	select {
	case r := <-results:
		return r.node, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// newRouter gives the node the client that routes what names no partition.
func newRouter(node *matching.Node, logger *slog.Logger) (*client.Client, error) {
	address := node.Holder().Address // as other nodes say it
	c, err := client.NewClient(client.Options{
		Addresses: []string{address}, Identity: node.Holder().Node, Logger: logger, Dynamic: node.Settings(),
		Direct: func(to string) matchingpb.MatchingServiceServer {
			if to != address {
				return nil
			}
			return node.Direct()
		},
	})
	if err != nil {
		return nil, err
	}
	node.SetUnrouted(client.NewFrontend(c))
	return c, nil
}

// serve runs the node until a signal ends the command's context.
func (s *serving) serve(cmd *cobra.Command, node *matching.Node, logger *slog.Logger) error {
	if err := node.Start(cmd.Context()); err != nil {
		return err
	}
	if err := output.Line(cmd.OutOrStdout(), Ready{node.GRPCAddr(), node.HTTPAddr(), os.Getpid()}); err != nil {
		return err
	}
	<-cmd.Context().Done()
	logger.Info("a signal asks the node to stop", "shutdown_timeout", s.shutdownTimeout)
	return nil
}

// explain adds to why a node cannot begin what to do about it.
func (s *serving) explain(err error) error {
	code, hint := exit.Failure, s.dynamic.Hint(err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		hint = "another process listens there; stop it, or choose other ones with --grpc-addr and --http-addr"
	case errors.Is(err, syscall.ENOSPC):
		code, hint = exit.StoreBroken, "make room on the disk of --data-dir and start again; what was acknowledged is safe"
	}
	return &exit.Error{Code: code, Err: fmt.Errorf("the node cannot start: %w", err), Hint: hint}
}
