package client

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/metric"
	"google.golang.org/grpc"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/wire"
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
	// [StaticRing]. All processes must list the same ones.
	Addresses []string
	// Ring places partitions on nodes.
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
	// Settings is read at each use and must be cheap. Default: the zero
	// Settings.
	Settings func() Settings
}

// Settings are what may change while a client runs. The zero value of a field
// means its default; a bound may be lifted by a large number.
type Settings struct {
	// WritePartitions and ReadPartitions are the partitions of a queue when no
	// node reported them; default 1, and read at least write
	// (matching.numTaskqueueWritePartitions and ...ReadPartitions).
	WritePartitions, ReadPartitions int32
	// Timeout and LongPollTimeout cap the caller's own deadlines, default
	// [DefaultTimeout] and [DefaultLongPollTimeout].
	Timeout, LongPollTimeout time.Duration
	// MaxPayloadBytes of one task, default 1 MiB (matching.maxPayloadBytes). A
	// larger one is refused before it is sent.
	MaxPayloadBytes int

	// NoBatching sends every call alone.
	NoBatching bool
	// BatchCalls in flight to a node, for each of adds, completions and
	// heartbeats, default 4.
	BatchCalls int
	// BatchBytes of one call, default 1 MiB. What waits leaves once it
	// reaches this, although a call is in flight.
	BatchBytes int
	// BatchItems of one call, default 256; they bound it like BatchBytes.
	BatchItems int
	// BatchStuck is the age at which a call in flight no longer holds up what
	// waits, default 10 ms. It is looked at when a call comes; there is no
	// timer.
	BatchStuck time.Duration
}

func (s Settings) withDefaults() Settings {
	setDefault(&s.WritePartitions, 1)
	s.ReadPartitions = max(s.ReadPartitions, s.WritePartitions)
	setDefault(&s.Timeout, DefaultTimeout)
	setDefault(&s.LongPollTimeout, DefaultLongPollTimeout)
	setDefault(&s.MaxPayloadBytes, wire.Limits{}.WithDefaults().PayloadBytes)
	setDefault(&s.BatchCalls, 4)
	setDefault(&s.BatchBytes, 1<<20)
	setDefault(&s.BatchItems, 256)
	setDefault(&s.BatchStuck, 10*time.Millisecond)
	return s
}

// setDefault replaces what is not positive.
func setDefault[T ~int | ~int32 | ~int64](field *T, value T) {
	if *field <= 0 {
		*field = value
	}
}
