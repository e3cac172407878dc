package frontend

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
	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/logs"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/cmd/taskring/remote"
	"github.com/taskring/taskring/cmd/taskring/serve"
)

// The defaults of the flags: beside those of a node on the same machine.
const (
	defaultGRPCAddr    = "127.0.0.1:7243"
	defaultHTTPAddr    = "127.0.0.1:7244"
	defaultStopTimeout = 10 * time.Second
)

const frontendLong = `Run a frontend: a process that keeps nothing, takes requests for whole task
queues over gRPC, and routes each to the node that owns its partition.

All frontends, nodes and clients of a cluster have to list the same nodes under
the same addresses: from them alone each computes which node owns what.

When the frontend is ready it prints one line of JSON on standard output:
{"grpc_addr":...,"http_addr":...,"pid":...}. The log goes to standard error.
The HTTP address serves /livez, /readyz and /metrics. Port 0 takes a free port.

SIGINT and SIGTERM: the frontend is not ready any more, ends waiting polls,
answers what runs and ends, all within --shutdown-timeout. A second signal ends
it at once.

Routing and the like are tuned while the frontend runs, by the file of
--dynamic-config: give it the one of the nodes.

Each flag can be given as an environment variable; the flag wins.`

// fronting is one run of `frontend`.
type fronting struct {
	nodes       []string
	config      config
	logs        logs.Flags
	stopTimeout time.Duration
}

// Command returns `taskring frontend`.
func Command() *cobra.Command {
	var f fronting
	cmd := &cobra.Command{
		Use:     "frontend --nodes HOST:PORT,...",
		Short:   "Run a frontend that routes requests to the nodes that own the partitions",
		Long:    frontendLong,
		Example: "  taskring frontend --nodes 10.0.0.1:7233,10.0.0.2:7233 --grpc-addr 0.0.0.0:7243",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&f.nodes, "nodes", nil, "HOST:PORT of each node, with commas or by repeating the flag (required)")
	flags.StringVar(&f.config.grpcAddr, "grpc-addr", defaultGRPCAddr, "HOST:PORT of the service")
	flags.StringVar(&f.config.httpAddr, "http-addr", defaultHTTPAddr, "HOST:PORT of /livez, /readyz and /metrics")
	flags.DurationVar(&f.stopTimeout, "shutdown-timeout", defaultStopTimeout, "how long a frontend that is told to stop may take")
	flags.BoolVar(&f.config.reflection, "reflection", true, "serve gRPC reflection, for tools such as grpcurl")
	env.Bind(flags, "nodes", "grpc-addr", "http-addr", "shutdown-timeout", "reflection")
	f.config.dynamic.Add(cmd)
	f.logs.Add(cmd)
	return cmd
}

func (f *fronting) check() error {
	if len(f.nodes) == 0 {
		return exit.Usagef("no node is named; say which with --nodes HOST:PORT,...")
	}
	for _, address := range f.nodes {
		if err := remote.CheckAddress("--nodes", address); err != nil {
			return err
		}
	}
	for flag, address := range map[string]string{"--grpc-addr": f.config.grpcAddr, "--http-addr": f.config.httpAddr} {
		if err := remote.CheckListen(flag, address); err != nil {
			return err
		}
	}
	if f.stopTimeout <= 0 {
		return exit.Usagef("--shutdown-timeout %v has to be positive", f.stopTimeout)
	}
	return nil
}

func (f *fronting) run(cmd *cobra.Command) error {
	if err := f.check(); err != nil {
		return err
	}
	logger, err := f.logs.Logger(cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	f.config.logger = logger
	f.config.client = client.Options{Addresses: f.nodes, Identity: remote.Identity(), Logger: logger}
	s, err := newServer(cmd.Context(), f.config)
	if err != nil {
		return f.explain(err)
	}
	err = f.serve(cmd, s, logger)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), f.stopTimeout)
	defer cancel()
	return errors.Join(err, s.stop(ctx))
}

// serve runs the server until a signal ends the command's context.
func (f *fronting) serve(cmd *cobra.Command, s *server, logger *slog.Logger) error {
	s.start()
	ready := serve.Ready{GRPCAddr: s.grpcL.Addr().String(), HTTPAddr: s.httpL.Addr().String(), PID: os.Getpid()}
	logger.Info("the frontend serves", "grpc_addr", ready.GRPCAddr, "http_addr", ready.HTTPAddr, "nodes", f.nodes)
	if err := output.Line(cmd.OutOrStdout(), ready); err != nil {
		return err
	}
	<-cmd.Context().Done()
	logger.Info("a signal asks the frontend to stop", "shutdown_timeout", f.stopTimeout)
	return nil
}

// explain adds to why a frontend cannot begin what to do about it.
func (f *fronting) explain(err error) error {
	hint := f.config.dynamic.Hint(err)
	if errors.Is(err, syscall.EADDRINUSE) {
		hint = "another process listens there; stop it, or choose other ones with --grpc-addr and --http-addr"
	}
	return &exit.Error{Code: exit.Failure, Err: fmt.Errorf("the frontend cannot start: %w", err), Hint: hint}
}
