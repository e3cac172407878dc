package wire

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

func drawCounts(t *rapid.T) PartitionCounts {
	return PartitionCounts{partition.Counts{
		Read:         rapid.Int32Min(0).Draw(t, "read"),
		Write:        rapid.Int32Min(0).Draw(t, "write"),
		BacklogCap:   rapid.Int64Min(0).Draw(t, "cap"),
		BacklogCodes: string(rapid.SliceOf(rapid.Byte()).Draw(t, "codes")),
		Managed:      rapid.Bool().Draw(t, "managed"),
	}}
}

// TestCountsCodec holds the codec written by hand to the generated one, in both
// directions.
func TestCountsCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := drawCounts(t)
		var m matchingpb.PartitionCounts
		if err := proto.Unmarshal(c.Append(nil), &m); err != nil {
			t.Fatal(err)
		}
		if got := DecodePartitionCounts(&m); !got.Equal(c) {
			t.Fatalf("generated code reads %+v, want %+v", got, c)
		}
		b, err := proto.Marshal(c.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if got, err := ParsePartitionCounts(b); err != nil || !got.Equal(c) {
			t.Fatalf("ours reads %+v, %v, want %+v", got, err, c)
		}
	})
}

func TestUnknownCountsTakeNoBytes(t *testing.T) {
	var none PartitionCounts
	if none.Encode() != nil || len(none.Append(nil)) != 0 || !DecodePartitionCounts(nil).Equal(none) {
		t.Error("the zero value is not encoded as nothing")
	}
}

func TestCountsOfANewerVersion(t *testing.T) {
	b := PartitionCounts{partition.Counts{Read: 2, Write: 1}}.Append(nil)
	b = append(b, 0x7a, 2, 'h', 'i') // field 15, two bytes
	got, err := ParsePartitionCounts(b)
	if err != nil || got.Read != 2 || got.Write != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestBadCounts(t *testing.T) {
	for name, b := range map[string][]byte{
		"garbage":   {0xff},
		"cut":       PartitionCounts{partition.Counts{Read: 300}}.Append(nil)[:2],
		"negative":  PartitionCounts{partition.Counts{Read: -1, Write: 1}}.Append(nil),
		"cut bytes": {0x22, 9, 'x'},
	} {
		got, err := ParsePartitionCounts(b)
		if !errors.Is(err, ErrBadCounts) || !got.Equal(PartitionCounts{}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// incoming turns what a client would send into what a handler sees.
func incoming(ctx context.Context) context.Context {
	md, _ := metadata.FromOutgoingContext(ctx)
	return metadata.NewIncomingContext(context.Background(), md)
}

func TestCountsHeader(t *testing.T) {
	ctx := context.Background()
	if c, err := ParsePartitionCountsFromIncomingContext(ctx); err != nil || c.Valid() {
		t.Errorf("a call without counts: %+v, %v", c, err)
	}
	full := PartitionCounts{partition.Counts{Read: 4, Write: 3, BacklogCap: 9, BacklogCodes: "abcd", Managed: true}}
	got, err := ParsePartitionCountsFromIncomingContext(incoming(full.AppendToOutgoing(ctx)))
	if want := (PartitionCounts{partition.Counts{Read: 4, Write: 3, Managed: true}}); err != nil || !got.Equal(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	bad := metadata.NewIncomingContext(ctx, metadata.Pairs(CountsHeader, "\xff"))
	if _, err := ParsePartitionCountsFromIncomingContext(bad); !errors.Is(err, ErrBadCounts) {
		t.Errorf("a malformed header: %v", err)
	}
	twice := full.AppendToOutgoing(PartitionCounts{partition.Counts{Read: 1, Write: 1}}.AppendToOutgoing(ctx))
	if got, err := ParsePartitionCountsFromIncomingContext(incoming(twice)); err != nil || got.Read != 4 {
		t.Errorf("of two headers the last counts: %+v, %v", got, err)
	}
}

// trailerStream is the part of a served call that takes its trailer.
type trailerStream struct {
	grpc.ServerTransportStream
	trailer metadata.MD
}

func (s *trailerStream) SetTrailer(md metadata.MD) error {
	s.trailer = metadata.Join(s.trailer, md)
	return nil
}

func TestCountsTrailer(t *testing.T) {
	var s trailerStream
	want := PartitionCounts{partition.Counts{Read: 2, Write: 1, BacklogCap: 5, BacklogCodes: "\x00\x80"}}
	if err := want.SetTrailer(grpc.NewContextWithServerTransportStream(context.Background(), &s)); err != nil {
		t.Fatal(err)
	}
	if got, err := ParsePartitionCountsFromTrailer(s.trailer); err != nil || !got.Equal(want) {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
	if err := want.SetTrailer(context.Background()); err == nil {
		t.Error("SetTrailer outside of a call succeeds")
	}
}

func TestEstimatedTasks(t *testing.T) {
	ctx := context.Background()
	if _, ok := ParseEstimatedTasksAllPartitions(ctx); ok {
		t.Error("a call without an estimate has one")
	}
	if n, ok := ParseEstimatedTasksAllPartitions(incoming(AppendEstimatedTasks(ctx, 17))); !ok || n != 17 {
		t.Errorf("got %d, %v", n, ok)
	}
	for _, bad := range []string{"", "-1", "+1", "1.5", "0x10", "1_0", "9223372036854775808", "٣"} {
		if n, ok := parseEstimatedTasks(bad); ok || n != 0 {
			t.Errorf("%q is read as %d", bad, n)
		}
	}
	if n, ok := parseEstimatedTasks("9223372036854775807"); !ok || n != 1<<63-1 {
		t.Errorf("the largest number is read as %d, %v", n, ok)
	}
}

func FuzzParsePartitionCounts(f *testing.F) {
	f.Add([]byte{})
	f.Add(PartitionCounts{partition.Counts{Read: 4, Write: 2, BacklogCap: 1 << 40, BacklogCodes: "abcd", Managed: true}}.Append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := ParsePartitionCounts(b)
		if err != nil {
			if !c.Equal(PartitionCounts{}) {
				t.Fatalf("%x: error %v comes with %+v", b, err, c)
			}
			return
		}
		if again, err := ParsePartitionCounts(c.Append(nil)); err != nil || !again.Equal(c) {
			t.Fatalf("%x reads as %+v, which reads back as %+v, %v", b, c, again, err)
		}
	})
}

func FuzzParseEstimatedTasks(f *testing.F) {
	f.Add("4")
	f.Add("-4")
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseEstimatedTasks(s); n < 0 || (!ok && n != 0) {
			t.Fatalf("%q is read as %d, %v", s, n, ok)
		}
	})
}
