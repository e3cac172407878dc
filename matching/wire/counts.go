package wire

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

// Names of the headers and trailers of single calls. Batches and streams carry
// the same in their messages.
const (
	// CountsHeader holds a PartitionCounts message: as a header the caller's
	// counts, as a trailer, also of an error, the server's.
	CountsHeader = "pcnt-bin"
	// EstimatedTasksHeader holds a decimal number: the tasks over all
	// partitions that an add at the root stands for.
	EstimatedTasksHeader = "etap"
)

// ErrBadCounts is matched by the error for bytes that are no partition counts.
var ErrBadCounts = errors.New("malformed partition counts")

// PartitionCounts are partition counts that travel with calls. The zero value
// means "not known".
type PartitionCounts struct {
	partition.Counts
}

// Equal reports whether both say the same, backlog figures included.
func (c PartitionCounts) Equal(o PartitionCounts) bool { return c == o }

// Encode returns the message for c, nil for the zero value.
func (c PartitionCounts) Encode() *matchingpb.PartitionCounts {
	if c == (PartitionCounts{}) {
		return nil
	}
	return &matchingpb.PartitionCounts{
		Read:         c.Read,
		Write:        c.Write,
		BacklogCap:   c.BacklogCap,
		BacklogCodes: []byte(c.BacklogCodes),
		Managed:      c.Managed,
	}
}

// DecodePartitionCounts reads what [PartitionCounts.Encode] wrote.
func DecodePartitionCounts(m *matchingpb.PartitionCounts) PartitionCounts {
	return PartitionCounts{partition.Counts{
		Read:         m.GetRead(),
		Write:        m.GetWrite(),
		BacklogCap:   m.GetBacklogCap(),
		BacklogCodes: string(m.GetBacklogCodes()),
		Managed:      m.GetManaged(),
	}}
}

// Field numbers of the message PartitionCounts. It travels with every single
// call, so it is coded by hand; a test holds the code to the generated one.
const (
	fieldRead = iota + 1
	fieldWrite
	fieldBacklogCap
	fieldBacklogCodes
	fieldManaged
)

// Append appends c to b as a PartitionCounts message; nothing for the zero value.
func (c PartitionCounts) Append(b []byte) []byte {
	b = appendVarint(b, fieldRead, int64(c.Read))
	b = appendVarint(b, fieldWrite, int64(c.Write))
	b = appendVarint(b, fieldBacklogCap, c.BacklogCap)
	if c.BacklogCodes != "" {
		b = protowire.AppendTag(b, fieldBacklogCodes, protowire.BytesType)
		b = protowire.AppendString(b, c.BacklogCodes)
	}
	if c.Managed {
		b = appendVarint(b, fieldManaged, 1)
	}
	return b
}

func appendVarint(b []byte, field protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, uint64(v))
}

// ParsePartitionCounts reads what [PartitionCounts.Append] wrote. An error
// matches [ErrBadCounts] and comes with the zero value. Fields of a newer
// version are skipped.
func ParsePartitionCounts(b []byte) (PartitionCounts, error) {
	var c PartitionCounts
	for len(b) > 0 {
		field, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return PartitionCounts{}, fmt.Errorf("%w: %w", ErrBadCounts, protowire.ParseError(n))
		}
		b = b[n:]
		if n = consumeCounts(&c, field, kind, b); n < 0 {
			return PartitionCounts{}, fmt.Errorf("%w: field %d: %w", ErrBadCounts, field, protowire.ParseError(n))
		}
		b = b[n:]
	}
	if c.Read < 0 || c.Write < 0 || c.BacklogCap < 0 {
		return PartitionCounts{}, fmt.Errorf("%w: negative: read %d, write %d, backlog cap %d", ErrBadCounts, c.Read, c.Write, c.BacklogCap)
	}
	return c, nil
}

// consumeCounts takes the value of one field off the front of b and returns its
// length, negative when it is malformed.
func consumeCounts(c *PartitionCounts, field protowire.Number, kind protowire.Type, b []byte) int {
	switch {
	case field == fieldBacklogCodes && kind == protowire.BytesType:
		v, n := protowire.ConsumeBytes(b)
		c.BacklogCodes = string(v)
		return n
	case kind == protowire.VarintType:
		v, n := protowire.ConsumeVarint(b)
		switch field {
		case fieldRead:
			c.Read = int32(v)
		case fieldWrite:
			c.Write = int32(v)
		case fieldBacklogCap:
			c.BacklogCap = int64(v)
		case fieldManaged:
			c.Managed = v != 0
		}
		return n
	default:
		return protowire.ConsumeFieldValue(field, kind, b)
	}
}

// SetTrailer puts c into the trailer of the call that a handler serves; it is
// sent with an error too. The error is gRPC's, when ctx belongs to no call.
func (c PartitionCounts) SetTrailer(ctx context.Context) error {
	if err := grpc.SetTrailer(ctx, metadata.Pairs(CountsHeader, string(c.Append(nil)))); err != nil {
		return fmt.Errorf("trailer %s: %w", CountsHeader, err)
	}
	return nil
}

// AppendToOutgoing returns a context whose calls carry c, without its backlog
// figures: they interest only clients.
func (c PartitionCounts) AppendToOutgoing(ctx context.Context) context.Context {
	c.BacklogCap, c.BacklogCodes = 0, ""
	return metadata.AppendToOutgoingContext(ctx, CountsHeader, string(c.Append(nil)))
}

// ParsePartitionCountsFromIncomingContext returns the counts that a caller
// sent. A call without any gives the zero value, which every server accepts; an
// error, which matches [ErrBadCounts], comes with the zero value too.
func ParsePartitionCountsFromIncomingContext(ctx context.Context) (PartitionCounts, error) {
	return lastCounts(metadata.ValueFromIncomingContext(ctx, CountsHeader))
}

// ParsePartitionCountsFromTrailer returns the counts that a server sent, as
// [ParsePartitionCountsFromIncomingContext] does for a caller's.
func ParsePartitionCountsFromTrailer(trailer metadata.MD) (PartitionCounts, error) {
	return lastCounts(trailer[CountsHeader])
}

// lastCounts reads the last value: what stands nearest to the sender wins over
// what a middleman passed on.
func lastCounts(values []string) (PartitionCounts, error) {
	if len(values) == 0 {
		return PartitionCounts{}, nil
	}
	return ParsePartitionCounts([]byte(values[len(values)-1]))
}

// AppendEstimatedTasks returns a context whose adds stand for that many tasks
// over all partitions.
func AppendEstimatedTasks(ctx context.Context, tasks int64) context.Context {
	return metadata.AppendToOutgoingContext(ctx, EstimatedTasksHeader, strconv.FormatInt(tasks, 10))
}

// ParseEstimatedTasksAllPartitions returns how many tasks over all partitions
// an add stands for. ok is false when the caller sent no number, or one that is
// negative or malformed; such an add stands for itself.
func ParseEstimatedTasksAllPartitions(ctx context.Context) (tasks int64, ok bool) {
	values := metadata.ValueFromIncomingContext(ctx, EstimatedTasksHeader)
	if len(values) == 0 {
		return 0, false
	}
	return parseEstimatedTasks(values[len(values)-1])
}

// parseEstimatedTasks accepts ASCII digits only: strconv alone takes signs.
func parseEstimatedTasks(s string) (int64, bool) {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil || n > math.MaxInt64 {
		return 0, false
	}
	return int64(n), true
}
