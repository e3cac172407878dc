package balance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/taskring/taskring/partition"
)

var queue = partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}

func seeded(seed uint64) *Balancer { return New(rand.New(rand.NewPCG(seed, 1)).Uint64) }

// pickRead returns a token that tests may keep in lists.
func pickRead(b *Balancer, q partition.Queue, c partition.Counts) *Token {
	t := b.PickReadPartition(q, c)
	return &t
}

func hold(b *Balancer, id partition.ID) *Token {
	t := b.Hold(id)
	return &t
}

func counts(n int32) partition.Counts { return partition.Counts{Read: n, Write: n} }

// within fails unless got is within 5 standard deviations of the mean of n
// draws with probability p: wrong once in 1.7 million runs.
func within(t *testing.T, what string, got, n int, p float64) {
	t.Helper()
	mean, deviation := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
	if math.Abs(float64(got)-mean) > 5*deviation {
		t.Errorf("%s: %d of %d, want %.0f +- %.0f", what, got, n, mean, 5*deviation)
	}
}

func TestWriteIsUniform(t *testing.T) {
	const draws = 100_000
	for _, n := range []int32{1, 2, 4, 7, 128} {
		b := seeded(uint64(n))
		hits := make([]int, n)
		var estimated int64
		for range draws {
			number, stands := b.PickWritePartition(queue, counts(n))
			hits[number]++
			estimated += stands
			if (number == 0) != (stands > 0) {
				t.Fatalf("an add to partition %d stands for %d tasks", number, stands)
			}
		}
		for number, got := range hits {
			if n > 1 {
				within(t, fmt.Sprintf("partition %d of %d", number, n), got, draws, 1/float64(n))
			}
		}
		within(t, fmt.Sprintf("estimate over %d", n), int(estimated)/int(n), draws, 1/float64(n))
	}
}

func TestRequestIDsStayAndSpread(t *testing.T) {
	b := seeded(1)
	const ids = 40_000
	hits := make([]int, 8)
	for i := range ids {
		id := fmt.Sprintf("order-%d", i)
		number, _ := b.PickRequest(counts(8), id)
		if again, _ := b.PickRequest(counts(8), id); again != number {
			t.Fatalf("%s went to %d and %d", id, number, again)
		}
		hits[number]++
	}
	for number, got := range hits {
		within(t, fmt.Sprintf("partition %d", number), got, ids, 1.0/8)
	}
}

func TestUnknownCountsMeanTheRoot(t *testing.T) {
	b := seeded(1)
	if number, stands := b.PickWritePartition(queue, partition.Counts{}); number != 0 || stands != 1 {
		t.Errorf("write to %d, standing for %d", number, stands)
	}
	if token := pickRead(b, queue, partition.Counts{}); token.Partition != 0 {
		t.Errorf("read from %d", token.Partition)
	}
}

// TestReadTakesTheFewest holds the pick to the rule, by a dumb second look.
func TestReadTakesTheFewest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := seeded(rapid.Uint64().Draw(t, "seed"))
		open := make([]int, rapid.IntRange(1, 9).Draw(t, "partitions"))
		for i := range open {
			open[i] = rapid.IntRange(0, 3).Draw(t, "open")
			for range open[i] {
				b.Hold(queue.Partition(int32(i)))
			}
		}
		token := pickRead(b, queue, counts(int32(len(open))))
		fewest := open[0]
		for _, n := range open {
			fewest = min(fewest, n)
		}
		if open[token.Partition] != fewest {
			t.Fatalf("picked %d of %v", token.Partition, open)
		}
	})
}

func TestReadStartsAnywhere(t *testing.T) {
	b := seeded(3)
	const draws = 50_000
	hits := make([]int, 5)
	for range draws {
		token := pickRead(b, queue, counts(5))
		hits[token.Partition]++
		token.Release()
	}
	for number, got := range hits {
		within(t, fmt.Sprintf("partition %d", number), got, draws, 1.0/5)
	}
}

// TestSumIsOpenPolls: B1 and B2 under any order of picks, releases, double
// releases, growth and shrinkage.
func TestSumIsOpenPolls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := seeded(rapid.Uint64().Draw(t, "seed"))
		var open, released []*Token
		n := int32(4)
		t.Repeat(map[string]func(*rapid.T){
			"pick":   func(*rapid.T) { open = append(open, pickRead(b, queue, counts(n))) },
			"hold":   func(t *rapid.T) { open = append(open, hold(b, queue.Partition(rapid.Int32Range(-1, 9).Draw(t, "at")))) },
			"resize": func(t *rapid.T) { n = rapid.SampledFrom([]int32{1, 2, 4, 8}).Draw(t, "n") },
			"release": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip("none is open")
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "i")
				open[i].Release()
				released = append(released, open[i])
				open = append(open[:i], open[i+1:]...)
			},
			"release again": func(t *rapid.T) {
				if len(released) == 0 {
					t.Skip("none was released")
				}
				rapid.SampledFrom(released).Draw(t, "token").Release()
			},
			"": func(t *rapid.T) {
				if got := b.Outstanding(queue); got != int64(len(open)) {
					t.Fatalf("counters add up to %d, %d polls are open", got, len(open))
				}
			},
		})
	})
}

// TestShrinkAndGrow is the case of old: the polls at 2 and 3 outlive the
// shrinkage and are found again.
func TestShrinkAndGrow(t *testing.T) {
	b := seeded(1)
	four := make([]*Token, 0, 8)
	for range 4 {
		four = append(four, pickRead(b, queue, counts(4)))
	}
	two := pickRead(b, queue, counts(2))
	if two.Partition > 1 {
		t.Fatalf("picked %d of 2", two.Partition)
	}
	two.Release()
	for range 4 { // each has one again: the next four are spread
		four = append(four, pickRead(b, queue, counts(4)))
	}
	at := map[int32]int{}
	for _, token := range four {
		at[token.Partition]++
		token.Release()
		token.Release()
	}
	for number := range int32(4) {
		if at[number] != 2 {
			t.Errorf("polls by partition %v, want 2 each", at)
			break
		}
	}
	if n := b.Outstanding(queue); n != 0 {
		t.Errorf("%d polls are outstanding after all were released", n)
	}
}

func TestIdleQueuesLeave(t *testing.T) {
	b := seeded(1)
	held := pickRead(b, partition.Queue{Namespace: "ns", Name: "held", Type: partition.Activity}, counts(4))
	names := 100_000
	if os.Getenv("TASKRING_LONG") != "" {
		names = 1_000_000
	}
	for i := range names {
		pickRead(b, partition.Queue{Namespace: "ns", Name: strconv.Itoa(i), Type: partition.Activity}, counts(4)).Release()
	}
	if n := b.Queues(); n > MaxIdleQueues+1 {
		t.Errorf("%d queues are kept, want at most %d and the held one", n, MaxIdleQueues)
	}
	if n := b.Outstanding(partition.Queue{Namespace: "ns", Name: "held", Type: partition.Activity}); n != 1 {
		t.Errorf("the held queue has %d polls, want 1", n)
	}
	held.Release()
}

// TestConcurrentUse: B1 while queues are thrown away under the picks.
func TestConcurrentUse(t *testing.T) {
	b := New(rand.Uint64)
	var wg sync.WaitGroup
	queues := make([]partition.Queue, 3*MaxIdleQueues)
	for i := range queues {
		queues[i] = partition.Queue{Namespace: "ns", Name: strconv.Itoa(i), Type: partition.Activity}
	}
	kept := make([]map[int]*Token, 4)
	for g := range kept {
		kept[g] = map[int]*Token{}
		wg.Go(func() {
			for i := range 20_000 {
				at := (i*7 + g) % len(queues)
				token := pickRead(b, queues[at], counts(3))
				if i%100 == 0 && kept[g][at] == nil {
					kept[g][at] = token
					continue
				}
				token.Release()
			}
		})
	}
	wg.Wait()
	want := map[int]int64{}
	for _, tokens := range kept {
		for at := range tokens {
			want[at]++
		}
	}
	for at, n := range want {
		if got := b.Outstanding(queues[at]); got != n {
			t.Errorf("queue %d: counters add up to %d, %d polls are open", at, got, n)
		}
	}
}

func BenchmarkLookupWrite(b *testing.B) {
	balancer := New(rand.Uint64)
	b.ReportAllocs()
	for b.Loop() {
		balancer.PickWritePartition(queue, counts(128))
	}
}

func BenchmarkLookupRead(b *testing.B) {
	balancer := New(rand.Uint64)
	b.ReportAllocs()
	for b.Loop() {
		token := balancer.PickReadPartition(queue, counts(128))
		token.Release()
	}
}
