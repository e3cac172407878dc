package queue

import (
	"sort"
	"time"
)

// Limits of the poller history.
const (
	pollerTTL  = 5 * time.Minute
	maxPollers = 1000
)

// Poller is a worker that polled lately.
type Poller struct {
	Identity string
	LastSeen time.Time
	Open     int // polls waiting now
}

// pollers remembers which workers polled lately, by identity.
type pollers struct {
	byIdentity map[string]*Poller
}

func (p *pollers) init() { p.byIdentity = make(map[string]*Poller) }

func (p *pollers) begin(identity string, now time.Time) {
	w := p.byIdentity[identity]
	if w == nil {
		if len(p.byIdentity) >= maxPollers {
			p.forgetOldest(now)
		}
		w = &Poller{Identity: identity}
		p.byIdentity[identity] = w
	}
	w.LastSeen = now
	w.Open++
}

func (p *pollers) end(identity string, now time.Time) {
	if w := p.byIdentity[identity]; w != nil {
		w.LastSeen = now
		w.Open = max(w.Open-1, 0)
	}
}

// forgetOldest makes room: what is past its time goes, else the one that was
// not seen for longest.
func (p *pollers) forgetOldest(now time.Time) {
	var oldest *Poller
	for id, w := range p.byIdentity {
		if w.Open == 0 && now.Sub(w.LastSeen) > pollerTTL {
			delete(p.byIdentity, id)
			continue
		}
		if oldest == nil || w.LastSeen.Before(oldest.LastSeen) {
			oldest = w
		}
	}
	if oldest != nil && len(p.byIdentity) >= maxPollers {
		delete(p.byIdentity, oldest.Identity)
	}
}

// recent returns the workers seen within the last minutes, by identity.
func (p *pollers) recent(now time.Time) []Poller {
	var ps []Poller
	for _, w := range p.byIdentity {
		if w.Open > 0 || now.Sub(w.LastSeen) <= pollerTTL {
			ps = append(ps, *w)
		}
	}
	sort.Slice(ps, func(i, j int) bool { return ps[i].Identity < ps[j].Identity })
	return ps
}
