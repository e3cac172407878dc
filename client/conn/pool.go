package conn

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/experimental"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
)

// ErrClosed is returned for calls on a closed pool.
var ErrClosed = errors.New("the connections were closed")

// Options of a [Pool]. The zero value of a field takes its default.
type Options struct {
	// Dial are further options of every connection, such as transport
	// credentials; they win over the pool's own. Without credentials the
	// connections are plain text.
	Dial []grpc.DialOption
	// PerAddress is how many connections are made to an address, default 1. Calls
	// take them in turn: one connection may be bounded by a processor that
	// encrypts, or by the streams that the server allows.
	PerAddress int
	// Linger is how long an unused connection stays open, default 30 s.
	Linger time.Duration
	// Every is how often unused connections are looked for, default 30 s.
	Every time.Duration
	// Keep tells whether the node at an address is still wanted: its
	// connection then stays open although unused. Called without locks, from
	// the pool's goroutine. Default: none is.
	Keep func(address string) bool
	// Ping is how long a connection is silent before it is probed, default
	// 30 s. Servers enforce a minimum, 10 s at ours.
	Ping time.Duration
	// PingTimeout is how long the answer may take, default 10 s.
	PingTimeout time.Duration
	// MaxMessageBytes bounds what is received in one message, default 64 MiB. Dial
	// options cannot raise it. What is sent is bounded by the receiver.
	MaxMessageBytes int
}

func (o Options) withDefaults() Options {
	setDefault(&o.PerAddress, 1)
	setDefault(&o.Linger, 30*time.Second)
	setDefault(&o.Every, 30*time.Second)
	setDefault(&o.Ping, 30*time.Second)
	setDefault(&o.PingTimeout, 10*time.Second)
	setDefault(&o.MaxMessageBytes, 64<<20)
	if o.Keep == nil {
		o.Keep = func(string) bool { return false }
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Pool holds the connections of a client. All methods may be called from any
// number of goroutines.
type Pool struct {
	options Options
	dial    []grpc.DialOption
	stop    chan struct{}
	done    sync.WaitGroup

	mu struct {
		sync.Mutex
		closed bool
		open   map[place]*link
	}
}

// New returns a pool without connections and starts the goroutine that closes
// unused ones. Close ends it.
func New(options Options) *Pool {
	p := &Pool{options: options.withDefaults(), stop: make(chan struct{})}
	p.mu.open = map[place]*link{}
	// gRPC's own pool goes from 32 KiB to 1 MiB in one step, and clears what it
	// hands out: batches of a few hundred tasks lie between.
	buffers, err := mem.NewBinaryTieredBufferPool(8, 10, 12, 14, 15, 16, 17, 18, 19, 20)
	if err != nil {
		buffers = mem.DefaultBufferPool() // never: the sizes above are valid
	}
	// A node that restarts is back within a second or two, and its clients must not
	// all come at one moment. The gaps between
	// attempts to connect stay shorter than what callers are ready to wait
	// (retry.MaxFailed back-offs, 1.6 s at least).
	params := grpc.ConnectParams{
		Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.4, MaxDelay: 500 * time.Millisecond},
		MinConnectTimeout: 5 * time.Second,
	}
	p.dial = append([]grpc.DialOption{
		experimental.WithBufferPool(buffers),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithConnectParams(params),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: p.options.Ping, Timeout: p.options.PingTimeout, PermitWithoutStream: true}),
		// As a call option it would be made anew for each call.
		grpc.WithDefaultServiceConfig(fmt.Sprintf(`{"methodConfig":[{"name":[{}],"maxResponseMessageBytes":%d}]}`, p.options.MaxMessageBytes)),
		grpc.WithIdleTimeout(0), // the pool itself closes what is unused
	}, options.Dial...)
	p.done.Add(1)
	go p.sweep()
	return p
}

// Get returns the connection to an address. It costs nothing until it is used.
func (p *Pool) Get(address string) *Conn { return &Conn{pool: p, address: address} }

// Len returns the number of open connections.
func (p *Pool) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.mu.open)
}

// Close closes all connections, which breaks the calls on them, and waits for
// the pool's goroutine. Further calls fail with [ErrClosed]; a second Close
// does nothing.
func (p *Pool) Close() {
	p.mu.Lock()
	if !p.mu.closed {
		p.mu.closed = true
		close(p.stop)
	}
	open := p.mu.open
	p.mu.open = map[place]*link{}
	p.mu.Unlock()
	for _, l := range open {
		l.close()
	}
	p.done.Wait()
}

// place is where a connection belongs: one of those to an address.
type place struct {
	address string
	number  uint32
}

// link is one open connection.
type link struct {
	conn *grpc.ClientConn
	// Guarded by Pool.mu.
	users    int
	lastUsed time.Time
}

// close drops the error: that of a second close, which means closed as well.
func (l *link) close() { _ = l.conn.Close() }

// use returns the connection of a place, made when missing; it stays open until
// the same link is given to unuse.
func (p *Pool) use(at place) (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.closed {
		return nil, ErrClosed
	}
	l, ok := p.mu.open[at]
	if !ok {
		// NewClient does no I/O: the first call connects.
		cc, err := grpc.NewClient("passthrough:///"+at.address, p.dial...)
		if err != nil {
			return nil, fmt.Errorf("connecting to %q: %w", at.address, err)
		}
		l = &link{conn: cc}
		p.mu.open[at] = l
	}
	l.users++
	return l, nil
}

func (p *Pool) unuse(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.users--
	if l.users == 0 {
		l.lastUsed = time.Now()
	}
}

// sweep closes unused connections until the pool is closed.
func (p *Pool) sweep() {
	defer p.done.Done()
	tick := time.NewTicker(p.options.Every)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.closeUnused(now)
		}
	}
}

func (p *Pool) closeUnused(now time.Time) {
	for _, at := range p.unused(now) {
		if p.options.Keep(at.address) {
			continue
		}
		if l := p.remove(at, now); l != nil {
			l.close()
		}
	}
}

// unused returns the connections that nobody used of late.
func (p *Pool) unused(now time.Time) []place {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []place
	for at, l := range p.mu.open {
		if l.idle(now, p.options.Linger) {
			out = append(out, at)
		}
	}
	return out
}

// remove takes a connection out of the pool, unless it was used meanwhile.
func (p *Pool) remove(at place, now time.Time) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	l, ok := p.mu.open[at]
	if !ok || !l.idle(now, p.options.Linger) {
		return nil
	}
	delete(p.mu.open, at)
	return l
}

func (l *link) idle(now time.Time, linger time.Duration) bool {
	return l.users == 0 && now.Sub(l.lastUsed) >= linger
}
