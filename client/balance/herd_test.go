package balance

import (
	"math/rand/v2"
	"testing"

	"github.com/taskring/taskring/partition"
)

// herd is a queue of 8 partitions with clients that poll it by figures that are
// out of date. Time goes in steps of 10 ms. 100 tasks a second come to each
// partition, and every 4 seconds 4,000 at once to one of them, in turn; each poll
// brings one task, and a worker is back with its next poll after two steps.
type herd struct {
	random   *rand.Rand
	age      int // of the figures, in steps
	pick     func(client int, c partition.Counts) *Token
	backlogs []int64
	past     []partition.Counts // the figures of the last steps
	waiting  [][]herdPoll       // by partition, in the order of their coming
	working  []herdPoll         // back at a step
}

type herdPoll struct {
	client int
	token  *Token
	back   int
}

const herdPartitions = 8

// run returns the largest share of all polls that wait at one partition, at any
// time after the first wave.
func (h *herd) run(clients, each, steps int) float64 {
	h.backlogs, h.waiting = make([]int64, herdPartitions), make([][]herdPoll, herdPartitions)
	for i := range clients * each {
		h.working = append(h.working, herdPoll{client: i % clients, back: i % 10})
	}
	largest := 0.0
	for step := range steps {
		for p := range h.backlogs {
			h.backlogs[p]++
		}
		if step%400 == 0 {
			h.backlogs[step/400%herdPartitions] += 4000
		}
		h.past = append(h.past, withBacklogs(1000, h.backlogs...))
		figures := h.past[max(0, len(h.past)-1-h.age)]
		working := h.working
		h.working = nil
		for _, w := range working {
			if w.back > step {
				h.working = append(h.working, w)
				continue
			}
			w.token = h.pick(w.client, figures)
			h.waiting[w.token.Partition] = append(h.waiting[w.token.Partition], w)
		}
		for p := range h.backlogs {
			h.hand(p, step)
			if step > 500 {
				largest = max(largest, float64(len(h.waiting[p]))/float64(clients*each))
			}
		}
	}
	return largest
}

// hand gives the tasks of a partition to the polls that wait there.
func (h *herd) hand(p, step int) {
	n := min(int(h.backlogs[p]), len(h.waiting[p]))
	h.backlogs[p] -= int64(n)
	for _, w := range h.waiting[p][:n] {
		w.token.Release()
		w.back = step + 2
		h.working = append(h.working, w)
	}
	h.waiting[p] = append([]herdPoll(nil), h.waiting[p][n:]...)
}

// byWeightAlone is the plain rule: backlog + 32, whatever is outstanding.
func byWeightAlone(random *rand.Rand, c partition.Counts) *Token {
	all := int64(0)
	for p := range c.Read {
		tasks, _ := c.Backlog(p)
		all += tasks + emptyWeight
	}
	at := random.Int64N(all)
	for p := range c.Read {
		tasks, _ := c.Backlog(p)
		if at -= tasks + emptyWeight; at < 0 {
			return &Token{Partition: p}
		}
	}
	return &Token{}
}

// TestOldFiguresDoNotHerd states the largest share of polls on one partition.
func TestOldFiguresDoNotHerd(t *testing.T) {
	for _, fleet := range []struct {
		clients, each int
		most          float64
	}{{20, 20, 0.79}, {400, 1, 1}} {
		for _, seconds := range []int{0, 1, 3, 10} {
			random := rand.New(rand.NewPCG(uint64(seconds), uint64(fleet.clients)))
			balancers := make([]*Balancer, fleet.clients)
			for i := range balancers {
				balancers[i] = New(random.Uint64)
			}
			ours := &herd{random: random, age: seconds * 100, pick: func(client int, c partition.Counts) *Token {
				return pickRead(balancers[client], queue, c)
			}}
			plain := &herd{random: random, age: seconds * 100, pick: func(_ int, c partition.Counts) *Token {
				return byWeightAlone(random, c)
			}}
			got, alone := ours.run(fleet.clients, fleet.each, 2500), plain.run(fleet.clients, fleet.each, 2500)
			t.Logf("%d clients with %d polls, figures %2d s old: largest share %.2f, by weight alone %.2f", fleet.clients, fleet.each, seconds, got, alone)
			if got > alone {
				t.Errorf("%d clients with %d polls, figures %d s old: %.2f wait at one partition, by weight alone only %.2f", fleet.clients, fleet.each, seconds, got, alone)
			}
			if got > fleet.most {
				t.Errorf("%d clients with %d polls, figures %d s old: %.2f of the polls wait at one partition, want %.2f at most", fleet.clients, fleet.each, seconds, got, fleet.most)
			}
		}
	}
}
