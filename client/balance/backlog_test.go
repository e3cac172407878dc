package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/taskring/taskring/partition"
)

// withBacklogs returns counts with a figure for each partition.
func withBacklogs(limit int64, tasks ...int64) partition.Counts {
	codes := make([]byte, len(tasks))
	for i, n := range tasks {
		codes[i] = byte(partition.EncodeBacklog(n))
	}
	n := int32(len(tasks))
	return partition.Counts{Read: n, Write: n, BacklogCap: limit, BacklogCodes: string(codes)}
}

func TestWriteByGap(t *testing.T) {
	const draws = 200_000
	for _, tc := range []struct {
		name   string
		counts partition.Counts
		want   []float64 // probabilities
	}{
		{"by gap", withBacklogs(1024, 224, 1024, 424, 896), []float64{800.0 / 1568, 0, 640.0 / 1568, 128.0 / 1568}}, // 424 is coded as 384
		{"all empty", withBacklogs(1000, 0, 0, 0, 0), []float64{0.25, 0.25, 0.25, 0.25}},
		{"all full", withBacklogs(100, 128, 2000, 128, 1e6), []float64{0.25, 0.25, 0.25, 0.25}},
		{"only the root has room", withBacklogs(100, 0, 2000, 128, 1e6), []float64{1, 0, 0, 0}},
		{"a full root keeps its floor", withBacklogs(1024, 1024, 224, 224, 224), []float64{1.0 / 16, 15.0 / 48, 15.0 / 48, 15.0 / 48}},
		{"a figure is missing", partition.Counts{Read: 4, Write: 4, BacklogCap: 100, BacklogCodes: "\x00\xff\xff"}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"no cap", partition.Counts{Read: 4, Write: 4, BacklogCodes: "\x00\xff\xff\xff"}, []float64{0.25, 0.25, 0.25, 0.25}},
		{"a huge cap", withBacklogs(math.MaxInt64, 0, 1e9), []float64{0.5, 0.5}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := seeded(uint64(len(tc.name)))
			hits := make([]int, len(tc.want))
			var estimated, squares float64
			for range draws {
				number, stands := b.PickWritePartition(queue, tc.counts)
				hits[number]++
				estimated += float64(stands)
				squares += float64(stands) * float64(stands)
				if (number == 0) != (stands > 0) {
					t.Fatalf("an add to partition %d stands for %d tasks", number, stands)
				}
			}
			for number, want := range tc.want {
				if got := float64(hits[number]) / draws; math.Abs(got-want) > 5*math.Sqrt(want*(1-want)/draws)+0.005 {
					t.Errorf("partition %d: share %.4f, want %.4f", number, got, want)
				}
			}
			// B4: the mean is 1, within 5 standard errors.
			mean := estimated / draws
			if deviation := math.Sqrt((squares/draws - mean*mean) / draws); math.Abs(mean-1) > 5*deviation+1e-9 {
				t.Errorf("an add stands for %.4f tasks in the mean, want 1 +- %.4f", mean, 5*deviation)
			}
		})
	}
}

// TestReadByBacklog: the weights are backlog + 32, for three quarters of the picks.
func TestReadByBacklog(t *testing.T) {
	const draws = 100_000
	b := seeded(7)
	c := withBacklogs(1000, 96, 0, 32, 0) // weights 128 32 64 32 of 256
	hits := make([]int, 4)
	for range draws {
		token := b.PickReadPartition(queue, c)
		hits[token.Partition]++
		token.Release()
	}
	for number, weight := range []float64{128, 32, 64, 32} {
		within(t, fmt.Sprintf("partition %d", number), hits[number], draws, 0.75*weight/256+0.25/4)
	}
}

// TestPollsThatStayStopAtTheShare: no poll ever comes back, and the figure stays.
func TestPollsThatStayStopAtTheShare(t *testing.T) {
	for _, n := range []int{2, 4, 8, 64} {
		b := seeded(uint64(n))
		backlogs := make([]int64, n)
		backlogs[n-1] = 1e8
		here := 0
		const polls = 2000
		for range polls {
			token := b.PickReadPartition(queue, withBacklogs(1000, backlogs...))
			if int(token.Partition) == n-1 {
				here++
			}
		}
		share, most := float64(here)/polls, 0.75+0.25/float64(n)
		if share > most+0.001 || share < most-0.15 {
			t.Errorf("%d partitions: %.3f of the polls stay at the one with the backlog, want %.3f or little less", n, share, most)
		}
	}
}

func TestMoveReadAvoidsThePlace(t *testing.T) {
	b := seeded(1)
	for range 100 {
		token := b.PickReadPartition(queue, counts(4))
		before := token.Partition
		b.MoveRead(&token, queue, counts(4))
		if token.Partition == before {
			t.Fatalf("a poll that failed at %d is tried there again", before)
		}
		if n := b.Outstanding(queue); n != 1 {
			t.Fatalf("%d polls are outstanding, want 1", n)
		}
		token.Release()
		token.Release()
		if n := b.Outstanding(queue); n != 0 {
			t.Fatalf("%d polls are outstanding, want 0", n)
		}
	}
}

func TestForce(t *testing.T) {
	b := seeded(1)
	b.Force("ns", partition.Read, 5)
	b.Force("ns", partition.Write, 3)
	for range 50 {
		token := b.PickReadPartition(queue, counts(2))
		if token.Partition != 5 {
			t.Fatalf("read from %d, forced to 5", token.Partition)
		}
		token.Release()
		if number, stands := b.PickWritePartition(queue, counts(2)); number != 3 || stands != 0 {
			t.Fatalf("wrote to %d standing for %d, forced to 3", number, stands)
		}
	}
	if b.PickReadPartition(partition.Queue{Namespace: "other", Name: "q", Type: partition.Activity}, counts(2)).Partition > 1 {
		t.Error("another namespace is forced too")
	}
	b.Force("ns", partition.Write, 0)
	if number, stands := b.PickWritePartition(queue, counts(8)); number != 0 || stands != 1 {
		t.Errorf("wrote to %d standing for %d, forced to the root", number, stands)
	}
	b.Unforce("ns", partition.Read)
	b.Unforce("ns", partition.Write)
	hits := map[int32]bool{}
	for range 100 {
		number, _ := b.PickWritePartition(queue, counts(8))
		hits[number] = true
	}
	if len(hits) < 6 {
		t.Errorf("after Unforce 100 adds went to %d of 8 partitions", len(hits))
	}
}

func BenchmarkLookupWriteByGap(b *testing.B) {
	balancer := New(rand.Uint64)
	c := withBacklogs(10_000, make([]int64, 128)...)
	b.ReportAllocs()
	for b.Loop() {
		balancer.PickWritePartition(queue, c)
	}
}

func BenchmarkLookupReadByBacklog(b *testing.B) {
	balancer := New(rand.Uint64)
	backlogs := make([]int64, 128)
	backlogs[77] = 5000
	c := withBacklogs(10_000, backlogs...)
	b.ReportAllocs()
	for b.Loop() {
		token := balancer.PickReadPartition(queue, c)
		token.Release()
	}
}
