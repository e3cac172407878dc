// Package remote is how the client commands name a task queue and reach the
// nodes that serve it.
package remote

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/usage"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// DefaultAddress is where a node listens that was started without flags.
const DefaultAddress = "127.0.0.1:7233"

// DefaultNamespace is the namespace of commands that name none.
const DefaultNamespace = "default"

// Flags are the flags of a client command.
type Flags struct {
	Addresses []string
	Namespace string
	Queue     string
	Type      string
}

// AddAddress adds --address to a command.
func (f *Flags) AddAddress(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&f.Addresses, "address", []string{DefaultAddress},
		"HOST:PORT of a node, several with commas or by repeating the flag")
	env.Bind(cmd.Flags(), "address")
}

// AddNamespace adds --namespace to a command.
func (f *Flags) AddNamespace(cmd *cobra.Command, usage string) {
	cmd.Flags().StringVar(&f.Namespace, "namespace", DefaultNamespace, usage)
	env.Bind(cmd.Flags(), "namespace")
}

// AddQueue adds all flags that name a task queue and its nodes.
func (f *Flags) AddQueue(cmd *cobra.Command) {
	f.AddAddress(cmd)
	f.AddNamespace(cmd, "namespace of the task queue")
	cmd.Flags().StringVar(&f.Queue, "queue", "", "name of the task queue (required)")
	f.completeQueue(cmd)
	f.AddType(cmd, partition.Activity.String())
}

// AddType adds --type to a command.
func (f *Flags) AddType(cmd *cobra.Command, unset string) {
	cmd.Flags().StringVar(&f.Type, "type", unset, "task type: activity or workflow")
	usage.Words(cmd, "type", partition.Activity.String(), partition.Workflow.String())
}

// TaskQueue returns the queue that the flags name, or says what is wrong with it.
func (f *Flags) TaskQueue() (partition.Queue, error) {
	if f.Queue == "" {
		return partition.Queue{}, exit.Usagef("no task queue is named; say which with --queue NAME")
	}
	typ, err := partition.ParseTaskType(f.Type)
	if err != nil {
		return partition.Queue{}, exit.Usagef("--type: %w", err)
	}
	q := partition.Queue{Namespace: f.Namespace, Name: f.Queue, Type: typ}
	if err := q.Validate(); err != nil {
		return partition.Queue{}, exit.Usagef("%w", err)
	}
	return q, nil
}

// Dial returns a client of the nodes. Nothing is connected yet; Stop it.
// Without a logger what nobody can be answered with is not logged.
func (f *Flags) Dial(logger *slog.Logger) (*client.Client, error) { return f.DialWith(logger) }

// DialWith is Dial with options of each connection.
func (f *Flags) DialWith(logger *slog.Logger, options ...grpc.DialOption) (*client.Client, error) {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	if len(f.Addresses) == 0 {
		return nil, exit.Usagef("--address is empty; it has to be HOST:PORT, such as %s", DefaultAddress)
	}
	for _, address := range f.Addresses {
		if err := CheckAddress("--address", address); err != nil {
			return nil, err
		}
	}
	c, err := client.NewClient(client.Options{
		Addresses: f.Addresses, Identity: Identity(), Logger: logger, DialOptions: options,
	})
	if err != nil {
		return nil, exit.Usagef("%w", err)
	}
	return c, nil
}

// EachNode calls visit for each address in turn, with a client of that node alone:
// for questions about a node, which are not to be routed.
func (f *Flags) EachNode(visit func(address string, c *client.Client) error) error {
	for _, address := range f.Addresses {
		one := *f
		one.Addresses = []string{address}
		c, err := one.Dial(nil)
		if err != nil {
			return err
		}
		err = visit(address, c)
		c.Stop()
		if err != nil {
			return err
		}
	}
	return nil
}

// CheckListen refuses what no server can listen at, as the value of a flag. Port
// 0 takes a free port, no host is every interface.
func CheckListen(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err == nil {
		if _, err = strconv.ParseUint(port, 10, 16); err == nil {
			return nil
		}
	}
	return exit.Usagef("%s %q is not HOST:PORT, such as %s", flag, address, DefaultAddress)
}

// CheckAddress refuses what is not HOST:PORT, as the value of a flag.
func CheckAddress(flag, address string) error {
	host, port, err := net.SplitHostPort(address)
	if err == nil && host != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err == nil && n > 0 {
			return nil
		}
	}
	return exit.Usagef("%s %q is not HOST:PORT, such as %s", flag, address, DefaultAddress)
}

// Explain says why a call failed and what to do next; nil for nil.
func (f *Flags) Explain(err error, doing string) error { return exit.Call(err, doing, f.Addresses) }

// Describe asks for the figures of a queue.
func Describe(ctx context.Context, c matchingpb.MatchingServiceClient, q partition.Queue) (*matchingpb.DescribeTaskQueueResponse, error) {
	return c.DescribeTaskQueue(ctx, &matchingpb.DescribeTaskQueueRequest{TaskQueue: wire.EncodeQueue(q)})
}

// Identity says who calls, for people: user-chosen host name and process id.
func Identity() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("taskring@%s/%d", host, os.Getpid())
}
