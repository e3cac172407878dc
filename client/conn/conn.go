package conn

import (
	"context"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Conn makes calls to one address. It implements grpc.ClientConnInterface.
type Conn struct {
	pool    *Pool
	address string
	calls   atomic.Uint32 // so far; they take the connections in turn
}

var _ grpc.ClientConnInterface = (*Conn)(nil)

// Address returns what the connection is to.
func (c *Conn) Address() string { return c.address }

// Invoke makes a unary call. Its errors are gRPC statuses.
func (c *Conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	l, err := c.pool.use(c.place())
	if err != nil {
		return status.Error(codes.Canceled, err.Error())
	}
	defer c.pool.unuse(l)
	return l.conn.Invoke(ctx, method, args, reply, opts...) //nolint:wrapcheck // a gRPC status is the answer itself
}

// NewStream begins a stream. The connection counts as used until the stream
// ends, or until the context of a caller that does not read to the end does.
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	l, err := c.pool.use(c.place())
	if err != nil {
		return nil, status.Error(codes.Canceled, err.Error())
	}
	var once sync.Once
	ended := grpc.OnFinish(func(error) { once.Do(func() { c.pool.unuse(l) }) })
	stream, err := l.conn.NewStream(ctx, desc, method, append([]grpc.CallOption{ended}, opts...)...)
	if err != nil {
		once.Do(func() { c.pool.unuse(l) })
		return nil, err //nolint:wrapcheck // a gRPC status is the answer itself
	}
	return stream, nil
}

// place returns where the next call goes.
func (c *Conn) place() place {
	if c.pool.options.PerAddress == 1 {
		return place{address: c.address}
	}
	return place{c.address, c.calls.Add(1) % uint32(c.pool.options.PerAddress)}
}
