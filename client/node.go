package client

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/client/conn"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// node is one matching node: how to call it, and the lanes of what is joined
// on the way there.
type node struct {
	client  *Client
	address string
	remote  *conn.Conn
	// direct is the server itself when it runs in this process, else nil.
	direct matchingpb.MatchingServiceServer

	mu struct {
		sync.Mutex
		lanes map[string]*lanes // by what callers send along, see metadataKey
	}
}

// method is one unary method of the service, both ways to call it.
type method[Req, Resp any] struct {
	full   string // name, as gRPC spells it
	direct func(matchingpb.MatchingServiceServer, context.Context, *Req) (*Resp, error)
}

// of spells a method; its types follow from the generated code.
func of[Req, Resp any](full string, direct func(matchingpb.MatchingServiceServer, context.Context, *Req) (*Resp, error)) method[Req, Resp] {
	return method[Req, Resp]{full: full, direct: direct}
}

// name returns the bare name.
func (m method[Req, Resp]) name() string { return m.full[strings.LastIndexByte(m.full, '/')+1:] }

// sent is how a unary call is made, and what comes back beside its answer. It is
// one object, so that a call allocates it once, or with its own.
type sent struct {
	options []grpc.CallOption
	trailer metadata.MD // filled when a node answered
	from    peer.Peer
	own     [3]grpc.CallOption
}

// all returns the options of one call.
func (s *sent) all() []grpc.CallOption {
	s.trailer, s.from = nil, peer.Peer{}
	s.own = [3]grpc.CallOption{grpc.StaticMethod(), grpc.Trailer(&s.trailer), grpc.Peer(&s.from)}
	if len(s.options) == 0 {
		return s.own[:]
	}
	return append(s.own[:len(s.own):len(s.own)], s.options...)
}

// call makes one unary call to a node, once. The error is one of the domain:
// what the node said, a guess (wire.Guessed), or [unreachableError].
func (m method[Req, Resp]) call(ctx context.Context, n *node, in *Req, s *sent) (*Resp, error) {
	n.client.metrics.call(ctx, m.name())
	ctx, cancel := timed(ctx)
	defer cancel()
	if n.direct != nil {
		stream := &directStream{method: m.full}
		out, err := m.direct(n.direct, stream.context(ctx), in)
		s.trailer = stream.trailers()
		return out, wire.FromStatus(err)
	}
	// Not by the generated client, which makes a list of options of its own.
	out := new(Resp)
	err := n.remote.Invoke(ctx, m.full, in, out, s.all()...)
	if err == nil {
		return out, nil
	}
	return nil, pushedBack(n.failure(err, s.from.Addr != nil), s.trailer)
}

// pushbackTrailer is where a server, or a proxy, says in milliseconds when the
// call may be made again; not at all when it is negative or no number.
const pushbackTrailer = "grpc-retry-pushback-ms"

// pushback is an error with such advice.
type pushback struct {
	err   error
	after time.Duration
	never bool
}

func (e *pushback) Error() string { return e.err.Error() }

func (e *pushback) Unwrap() error { return e.err }

func pushedBack(err error, trailer metadata.MD) error {
	values := trailer[pushbackTrailer]
	if len(values) == 0 {
		return err
	}
	ms, bad := strconv.ParseInt(values[len(values)-1], 10, 32)
	return &pushback{err: err, after: time.Duration(max(ms, 0)) * time.Millisecond, never: bad != nil || ms < 0}
}

// failure translates the error of a remote call; gRPC fills in the peer of
// those that left this process.
func (n *node) failure(err error, left bool) error {
	if !left && status.Code(err) == codes.Unavailable {
		st, _ := status.FromError(err)
		return &unreachableError{task.Errorf(task.NotReady, "the node at %s cannot be reached: %s", n.address, st.Message())}
	}
	return wire.FromStatus(err)
}

// unreachableError is the error of a call that surely never left this process:
// there was no connection.
type unreachableError struct{ err *task.Error }

func (e *unreachableError) Error() string { return e.err.Error() }

func (e *unreachableError) Unwrap() error { return e.err }

// ErrUnreachable is matched by the error of a call for which no connection was
// made: it surely never left this process.
var ErrUnreachable = errors.New("no connection to the node")

// unreachableStatusError is what a caller gets for an [unreachableError]: its status,
// which matches ErrUnreachable.
type unreachableStatusError struct{ error }

// Is makes errors.Is find ErrUnreachable.
func (unreachableStatusError) Is(target error) bool { return target == ErrUnreachable }

// Unwrap returns the status error.
func (e unreachableStatusError) Unwrap() error { return e.error }

// GRPCStatus returns the status as it is, where gRPC finds it.
func (e unreachableStatusError) GRPCStatus() *status.Status { return status.Convert(e.error) }

// notSent reports whether a call surely never left this process.
func notSent(err error) bool {
	_, ok := errors.AsType[*unreachableError](err)
	return ok
}

// answered reports whether a node said so, with an error or without one.
func answered(err error) bool { return err == nil || (!wire.Guessed(err) && !notSent(err)) }

// directStream stands for the connection of a call within the process, so that
// the server finds headers and leaves trailers as in any other call.
type directStream struct {
	method string
	mu     sync.Mutex
	md     metadata.MD
}

// Method implements grpc.ServerTransportStream.
func (s *directStream) Method() string { return s.method }

// SetHeader implements grpc.ServerTransportStream; no caller looks at headers.
func (s *directStream) SetHeader(metadata.MD) error { return nil }

// SendHeader implements grpc.ServerTransportStream.
func (s *directStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerTransportStream.
func (s *directStream) SetTrailer(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.md = metadata.Join(s.md, md)
	return nil
}

// context returns what the server's handler gets: the caller's values and
// deadline, its outgoing headers as incoming ones.
func (s *directStream) context(ctx context.Context) context.Context {
	out, _ := metadata.FromOutgoingContext(ctx)
	return grpc.NewContextWithServerTransportStream(metadata.NewIncomingContext(ctx, out), s)
}

func (s *directStream) trailers() metadata.MD {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.md
}
