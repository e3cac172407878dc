package client

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/metadata"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
)

// lanes are the ways to a node of callers who send the same along, as of their
// credentials: only these may share a call.
type lanes struct {
	adds       lane[*adding, *matchingpb.AddTaskResponse]
	completes  lane[task.Token, *matchingpb.CompleteTaskResponse]
	heartbeats lane[task.Token, *matchingpb.HeartbeatTaskResponse]
	key        string
	users      int // calls that hold it; guarded by node.mu
}

// enter returns the lanes for what the context sends along. The caller leaves
// them when its call ended; lanes with metadata, of which there may be any
// number, are forgotten when the last one left.
func (n *node) enter(ctx context.Context) *lanes {
	key := metadataKey(ctx)
	n.mu.Lock()
	defer n.mu.Unlock()
	l, ok := n.mu.lanes[key]
	if !ok {
		l = n.newLanes()
		l.key = key
		n.mu.lanes[key] = l
	}
	l.users++
	return l
}

func (n *node) leave(l *lanes) {
	n.mu.Lock()
	defer n.mu.Unlock()
	l.users--
	if l.users == 0 && l.key != "" {
		delete(n.mu.lanes, l.key)
	}
}

func (n *node) newLanes() *lanes {
	group, l := &n.client.group, &lanes{}
	l.adds.limits, l.adds.group, l.adds.alone, l.adds.joint = n.client.laneLimits, group, n.addAlone, n.addTogether
	l.completes.limits, l.completes.group, l.completes.alone, l.completes.joint = n.client.laneLimits, group, n.completeAlone, n.completeTogether
	l.heartbeats.limits, l.heartbeats.group, l.heartbeats.alone, l.heartbeats.joint = n.client.laneLimits, group, n.heartbeatAlone, n.heartbeatTogether
	return l
}

func (c *Client) laneLimits() limits {
	s := c.settings()
	return limits{calls: s.BatchCalls, bytes: s.BatchBytes, items: s.BatchItems, stuck: s.BatchStuck}
}

// metadataKey writes down what a context sends along; equal metadata gives
// equal keys, none gives "".
func metadataKey(ctx context.Context) string {
	md, ok := metadata.FromOutgoingContext(ctx)
	if !ok || len(md) == 0 {
		return ""
	}
	names := make([]string, 0, len(md))
	for name := range md {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		for _, value := range md[name] {
			// Values may hold any byte; a length in front keeps them apart.
			b.WriteString(name)
			b.WriteByte(0)
			b.WriteString(lengthOf(value))
			b.WriteString(value)
		}
	}
	return b.String()
}

func lengthOf(s string) string {
	n := len(s)
	return string([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)})
}

// joins reports whether calls to a node are joined. Those within the process
// cost no more alone, and are joined by the node itself.
func (n *node) joins(options int, s *Settings) bool {
	return options == 0 && !s.NoBatching && n.direct == nil
}
