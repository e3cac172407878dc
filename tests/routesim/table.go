package routesim

import (
	"fmt"
	"strings"
	"time"
)

// Figures are what a scenario cost.
type Figures struct {
	Calls     int
	First     int           // calls that the first node they reached served
	Rerouted  int           // tries that went to a node which did not serve the partition, or to none
	Failed    int           // calls that gave up
	MostTries int           // of one call
	Longest   time.Duration // that a call took
	// Agree is the longest that a process took to hear of a change of the members:
	// from then on all agree.
	Agree time.Duration
	// LastReroute is the longest after a change of the members that a call was still
	// sent elsewhere because the client or the node that it reached had not heard of
	// all changes.
	LastReroute time.Duration
}

func (f *Figures) done(w *world, c *call) {
	f.Calls++
	if c.sent == 1 {
		f.First++
	}
	f.MostTries = max(f.MostTries, c.sent)
	f.Longest = max(f.Longest, w.now-c.began)
}

func (f *Figures) reroute(w *world, c *call) {
	f.Rerouted++
	truth, last := w.truth()
	if last >= 0 && (w.view(c.client) != truth || (c.at != nil && w.view(c.at.observer) != truth)) {
		f.LastReroute = max(f.LastReroute, w.now-last)
	}
}

// Play plays a scenario with a seed.
func Play(s Scenario, seed uint64) (Figures, error) {
	w, err := newWorld(s, seed)
	if err != nil {
		return Figures{}, err
	}
	w.play()
	return w.figures, w.err
}

// Seed is the seed of the figures in docs/routing.md.
const Seed = 1

// Table plays all scenarios and writes the rows for docs/routing.md.
func Table() (string, error) {
	var b strings.Builder
	b.WriteString("| what happens | calls | right node first, % | re-routes a call | most tries | longest call, ms | all agree after, s | last re-route after, s | failed |\n")
	b.WriteString("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n")
	for _, s := range Scenarios() {
		f, err := Play(s, Seed)
		if err != nil {
			return "", err
		}
		b.WriteString(f.row(s))
	}
	return b.String(), nil
}

func (f *Figures) row(s Scenario) string {
	agree, last := "-", "-"
	if len(s.Changes) > 0 {
		agree, last = seconds(f.Agree), seconds(f.LastReroute)
	}
	return fmt.Sprintf("| %s | %d | %.2f | %.4f | %d | %d | %s | %s | %d |\n",
		s.Name, f.Calls, 100*float64(f.First)/float64(f.Calls), float64(f.Rerouted)/float64(f.Calls),
		f.MostTries, f.Longest.Milliseconds(), agree, last, f.Failed)
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f", d.Seconds()) }
