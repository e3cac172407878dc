package client

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"

	"github.com/taskring/taskring/dynamicconfig/live"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

// The longest that calls take. A caller's own deadline counts when it is
// earlier.
const (
	// DefaultTimeout caps every call but polls.
	DefaultTimeout = time.Minute
	// DefaultLongPollTimeout caps polls. A poll ends empty, not with an error,
	// one second before its deadline.
	DefaultLongPollTimeout = 5 * time.Minute
)

// Options of a [Client]. Either Addresses or Ring must be set; for the rest the
// zero value of a field means its default.
type Options struct {
	// Addresses, HOST:PORT, are the nodes when there is no Ring: a
	// [StaticRing] in which each node is named by its address. All processes must
	// list the same ones.
	Addresses []string
	// Ring is the source of the view of the nodes.
	Ring Ring
	// Direct returns the server that runs in this very process under an
	// address, or nil. Calls to it are plain function calls: no socket, no
	// second encoding. What it is given and returns is shared with it. Asked
	// when an address is first called.
	Direct func(address string) matchingpb.MatchingServiceServer

	// DialOptions of every connection, such as
	// grpc.WithTransportCredentials. Without credentials the connections are
	// plain text.
	DialOptions []grpc.DialOption
	// ConnectionsPerNode is how many connections are made to a node, default 1.
	ConnectionsPerNode int
	// ConnectionLinger is how long the connection to a node that is in the Ring
	// no longer stays open unused, default 30 s.
	ConnectionLinger time.Duration

	// Identity names this process to people: it is the identity of polls that
	// have none. Default empty.
	Identity string
	// Logger gets what nobody can be answered with, default slog.Default().
	Logger *slog.Logger
	// Meter makes the client's metrics, default none.
	Meter metric.Meter
	// Tracer makes a span of each call of a caller's, default none. The trace
	// context of the caller travels in the headers of a task with or without it.
	Tracer trace.Tracer

	// Dynamic are the settings in force, of which [Declared] lists those that a
	// client reads. Nil: Settings and Queues, which have to be nil otherwise.
	Dynamic *live.Settings
	// Settings is read at each use and must be cheap. Default: the zero
	// Settings.
	Settings func() Settings
	// Queues returns what holds for a task queue, nil for the defaults. It is read
	// at each use and must be cheap.
	Queues func(partition.Queue) *QueueSettings

	// Balancer picks partitions, default one of the client's own. Several clients
	// may share one; tests force its picks.
	Balancer *LoadBalancer
}
