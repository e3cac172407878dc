package routesim

import "time"

// Change is a change of the members that happens at one instant. Nodes are numbers.
type Change struct {
	At     time.Duration
	Joins  []int // start and serve from then on
	Leaves []int // announce that they leave; they serve what they hold, and go after Linger
	Dies   []int // are gone at once, without a word
}

// Scenario is what is played.
type Scenario struct {
	Name string
	// Nodes are the members at the start, numbered from 0. Others may join.
	Nodes      int
	Queues     int
	Partitions int // of each queue
	Clients    int
	Changes    []Change
	// BatchSizes change from Old to New between Start and End; the same all the time
	// when they are equal.
	Old, New   int
	Start, End time.Duration

	Length time.Duration // of the scenario; calls that run then are finished
	Every  time.Duration // a client makes a call so often, on average

	// A process hears of a join or leave after some time up to Gossip, of a death
	// after Notice at least and up to Gossip more, less what Notice took.
	Gossip, Notice time.Duration
	Late           int           // so many clients hear of joins and leaves Lateness later
	Lateness       time.Duration // than others
	Skew           time.Duration // clocks are wrong by so much at most
	Linger         time.Duration // for which a node that leaves stays
}

// Times that calls take.
const (
	hop      = time.Millisecond       // there and back
	loading  = 30 * time.Millisecond  // taking a partition that nobody holds, at most
	handOver = 200 * time.Millisecond // having a partition handed over, at most
	deadline = time.Minute            // of a call
)

// standard returns a scenario in which nothing happens.
func standard(name string) Scenario {
	return Scenario{
		Name: name, Nodes: 100, Queues: 10_000, Partitions: 4, Clients: 50,
		Old: 8, New: 8, Length: time.Minute, Every: 50 * time.Millisecond,
		Gossip: 1500 * time.Millisecond, Notice: time.Second, Lateness: 3 * time.Second, Skew: 50 * time.Millisecond, Linger: 6 * time.Second,
	}
}

// Scenarios are those of the table in docs/routing.md.
func Scenarios() []Scenario {
	steady := standard("nothing changes")

	rollout := standard("the batch size goes from 0 to 8")
	rollout.Old, rollout.Start, rollout.End = 0, 5*time.Second, 55*time.Second

	moves := standard("a node joins or leaves every 5 s")
	deaths := standard("a node dies every 5 s")
	all := standard("all of that; 5 clients hear of joins and leaves 3 s late")
	all.Old, all.Start, all.End, all.Late = 0, 5*time.Second, 55*time.Second, 5
	for i := range 10 {
		at := time.Duration(i+1) * 5 * time.Second
		join, leave := Change{At: at, Joins: []int{100 + i}}, Change{At: at, Leaves: []int{10 * i}}
		die := Change{At: at + 2*time.Second, Dies: []int{10*i + 5}}
		if i%2 == 0 {
			moves.Changes = append(moves.Changes, join)
		} else {
			moves.Changes = append(moves.Changes, leave)
		}
		deaths.Changes = append(deaths.Changes, die)
		if i%3 == 0 { // two at once, and a death before all have heard of them
			both := Change{At: at, Joins: join.Joins, Leaves: leave.Leaves}
			all.Changes = append(all.Changes, both, die)
		}
	}

	fall := standard("nodes die, half of them every 5 s, until one is left")
	for living, at := 100, 5*time.Second; living > 1; at += 5 * time.Second {
		half := living / 2
		c := Change{At: at}
		for n := living - half; n < living; n++ {
			c.Dies = append(c.Dies, n)
		}
		fall.Changes = append(fall.Changes, c)
		living -= half
	}
	return []Scenario{steady, rollout, moves, deaths, all, fall}
}
