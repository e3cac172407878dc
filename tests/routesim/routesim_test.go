package routesim

import (
	"flag"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

var seedFlag = flag.Uint64("routesim.seed", 0, "replay this one seed")

// drawn returns a small scenario: nodes join, leave and die, and the batch size
// changes, while at least one node lives.
func drawn(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := Scenario{
		Name: "drawn", Nodes: 1 + rng.IntN(12), Queues: 100, Partitions: 1 + rng.IntN(8), Clients: 1 + rng.IntN(10),
		Old: rng.IntN(9), New: rng.IntN(9), Start: time.Second, End: 9 * time.Second,
		Length: 15 * time.Second, Every: 20 * time.Millisecond,
		Gossip: time.Second, Notice: time.Second / 2, Lateness: 3 * time.Second, Skew: 200 * time.Millisecond, Linger: 5 * time.Second,
	}
	s.Late = rng.IntN(s.Clients)
	var living []int
	next := s.Nodes
	for i := range s.Nodes {
		living = append(living, i)
	}
	// Deaths are so far apart that one is noticed before the next one: a call bears
	// that nobody answers for retry.MaxFailed tries.
	for at := time.Second; at < 12*time.Second; at += 1500*time.Millisecond + time.Duration(rng.Int64N(int64(time.Second))) {
		c := Change{At: at}
		i := rng.IntN(len(living))
		switch kind := rng.IntN(3); {
		case kind == 0 || len(living) == 1:
			c.Joins = []int{next}
			living, next = append(living, next), next+1
		case kind == 1:
			c.Leaves = []int{living[i]}
			living = append(living[:i], living[i+1:]...)
		default:
			c.Dies = []int{living[i]}
			living = append(living[:i], living[i+1:]...)
		}
		s.Changes = append(s.Changes, c)
	}
	return s
}

// TestNoCallFails while a node lives, whatever the views of clients and nodes.
func TestNoCallFails(t *testing.T) {
	seeds := uint64(20)
	if os.Getenv("TASKRING_LONG") != "" {
		seeds = 1000
	}
	first := uint64(1)
	if *seedFlag != 0 {
		first, seeds = *seedFlag, *seedFlag
	}
	var all Figures
	for seed := first; seed <= seeds; seed++ {
		s := drawn(seed)
		f, err := Play(s, seed)
		if err != nil {
			t.Fatal(err)
		}
		if f.Calls == 0 || f.Failed > 0 || f.First*2 < f.Calls {
			t.Fatalf("%+v in %+v\nreplay with: go test ./tests/routesim -run TestNoCallFails -v -args -routesim.seed=%d", f, s, seed)
		}
		all.Calls += f.Calls
		all.Rerouted += f.Rerouted
	}
	if all.Rerouted == 0 {
		t.Errorf("of %d calls none was sent elsewhere: no view differed", all.Calls)
	}
	t.Logf("%d calls, %d re-routes", all.Calls, all.Rerouted)
}

// TestCallsFailWithoutNodes: the simulation sees what it looks for.
func TestCallsFailWithoutNodes(t *testing.T) {
	s := drawn(1)
	s.Nodes, s.Changes = 2, []Change{{At: time.Second, Dies: []int{0, 1}}}
	s.Clients, s.Late, s.Length = 2, 0, 1200*time.Millisecond
	f, err := Play(s, 1)
	if err != nil || f.Failed == 0 || f.Failed == f.Calls {
		t.Errorf("%+v, %v: want calls that fail once nobody lives", f, err)
	}
}

func TestSeedsReplay(t *testing.T) {
	s := drawn(3)
	one, err := Play(s, 3)
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Play(s, 3); again != one {
		t.Errorf("a seed gave %+v and then %+v", one, again)
	}
	if other, _ := Play(s, 4); other == one {
		t.Errorf("two seeds gave %+v", one)
	}
}
