package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/taskring/taskring/client/balance"
	"github.com/taskring/taskring/client/conn"
	"github.com/taskring/taskring/client/retry"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
	"github.com/taskring/taskring/ring"
)

// LoadBalancer picks partitions, see package balance.
type LoadBalancer = balance.Balancer

// NewLoadBalancer returns a LoadBalancer, for those who route by themselves.
func NewLoadBalancer() *LoadBalancer { return balance.New(rand.Uint64) }

// RoutingClient is what [Client] is to its users: the service's own client, and
// where a partition lies.
type RoutingClient interface {
	matchingpb.MatchingServiceClient

	// Route returns the gRPC address of the node that owns a partition, or an
	// error when no node is known.
	Route(id partition.ID) (address string, err error)
}

var _ RoutingClient = (*Client)(nil)

// errStopped is returned for calls on a stopped client.
var errStopped = status.Error(codes.Canceled, "the client was stopped")

// Client routes calls to the nodes that own the partitions. It is used as the
// service's plain gRPC client, by any number of goroutines. See the package
// documentation for what it does on the way.
type Client struct {
	options  Options
	sources  sources
	ring     Ring
	log      *slog.Logger
	pool     *conn.Pool
	balancer *LoadBalancer
	counts   *countsCache
	metrics  *metrics
	group    group
	polls    openPolls
	budget   retry.Budget
	stopped  atomic.Bool
	stopping chan struct{} // closed by Stop
	stopOnce sync.Once

	badCounts seldom // warnings about counts that cannot be read

	nodes struct {
		atomic.Pointer[map[string]*node] // replaced as a whole

		mu sync.Mutex // held by who replaces it
	}
}

// NewClient returns a client. It does no I/O: connections are made when they
// are first used. With Addresses it builds the ring, see [StaticRing]. Stop ends it.
func NewClient(options Options) (*Client, error) {
	c := &Client{
		options: options, ring: options.Ring, log: options.Logger, balancer: options.Balancer,
		counts: newCountsCache(), stopping: make(chan struct{}),
	}
	if c.log == nil {
		c.log = slog.Default()
	}
	if c.balancer == nil {
		c.balancer = NewLoadBalancer()
	}
	if err := c.complete(); err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	c.polls.prefix = "p" + strconv.FormatUint(rand.Uint64(), 36) + "-"
	c.nodes.Store(&map[string]*node{})
	c.pool = conn.New(conn.Options{
		Dial:       options.DialOptions,
		PerAddress: options.ConnectionsPerNode,
		Linger:     options.ConnectionLinger,
		Keep:       c.isMember,
	})
	c.group.run(c.tend)
	return c, nil
}

// Stop breaks the calls that are in flight, waits for the client's goroutines
// and closes its connections. Calls that come later fail. It may be called
// twice, and by several goroutines: each returns when everything has ended.
func (c *Client) Stop() {
	c.stopped.Store(true)
	c.stopOnce.Do(func() { close(c.stopping) })
	c.metrics.stop()
	ended := c.group.stop()
	c.pool.Close()
	<-ended
}

// complete makes what may fail.
func (c *Client) complete() (err error) {
	switch {
	case c.ring != nil && len(c.options.Addresses) > 0:
		return errors.New("both Addresses and Ring are set, set one")
	case c.ring == nil && len(c.options.Addresses) == 0:
		return ErrNoNodes
	case c.ring == nil:
		if c.ring, err = StaticRing(ring.Named(c.options.Addresses...)...); err != nil {
			return err
		}
	}
	if c.sources, err = c.options.sources(); err != nil {
		return err
	}
	c.metrics, err = newMetrics(c.options.Meter, c)
	return err
}

// settings returns what is in force; nobody changes it.
func (c *Client) settings() *Settings { return c.sources.settings() }

// maxNodes is from how many nodes on those that left the ring are forgotten.
const maxNodes = 256

// node returns the node at an address.
func (c *Client) node(address string) *node {
	if n, ok := (*c.nodes.Load())[address]; ok {
		return n
	}
	c.nodes.mu.Lock()
	defer c.nodes.mu.Unlock()
	old := *c.nodes.Load()
	if n, ok := old[address]; ok {
		return n
	}
	next := make(map[string]*node, len(old)+1)
	members := c.addresses()
	for a, n := range old {
		if len(old) < maxNodes || slices.Contains(members, a) {
			next[a] = n
		}
	}
	n := &node{client: c, address: address, remote: c.pool.Get(address)}
	if c.options.Direct != nil {
		n.direct = c.options.Direct(address)
	}
	n.mu.lanes = map[string]*lanes{}
	next[address] = n
	c.nodes.Store(&next)
	return n
}

// visit makes a call of a trip until it succeeds or the trip ends.
func visit[Req, Resp any](ctx context.Context, t *trip, m method[Req, Resp], in func(partition.ID) (*Req, []grpc.CallOption)) (*Resp, error) {
	for {
		n, err := t.node(ctx)
		var out *Resp
		if err == nil {
			req, opts := in(t.id)
			s := &sent{options: opts}
			if out, err = m.call(ctx, n, req, s); answered(err) {
				t.client.learnFrom(t.id.Queue, s.trailer)
			}
		}
		if err == nil {
			return out, nil
		}
		if err = t.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// seldom logs a warning at most once a minute.
type seldom struct{ last atomic.Int64 }

func (s *seldom) warn(log *slog.Logger, text string, args ...any) {
	now := time.Now().UnixNano()
	last := s.last.Load()
	if now-last >= int64(time.Minute) && s.last.CompareAndSwap(last, now) {
		log.Warn(text, args...)
	}
}
