package queue

import (
	"cmp"
	"sort"
	"time"
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
	ttl        time.Duration // of those that do not poll now
	limit      int
}

func (p *pollers) init() {
	p.byIdentity = make(map[string]*Poller)
	p.bound(Settings{})
}

// bound sets the bounds; zero fields are the defaults.
func (p *pollers) bound(s Settings) {
	p.ttl = cmp.Or(s.PollerTTL, pollerHistoryTTL.Default())
	p.limit = cmp.Or(s.MaxPollers, maxPollerHistory.Default())
}

func (p *pollers) begin(identity string, now time.Time) {
	w := p.byIdentity[identity]
	if w == nil {
		if len(p.byIdentity) >= p.limit {
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
		if w.Open == 0 && now.Sub(w.LastSeen) > p.ttl {
			delete(p.byIdentity, id)
			continue
		}
		if oldest == nil || w.LastSeen.Before(oldest.LastSeen) {
			oldest = w
		}
	}
	if oldest != nil && len(p.byIdentity) >= p.limit {
		delete(p.byIdentity, oldest.Identity)
	}
}

// recent returns the workers seen within the last minutes, by identity.
func (p *pollers) recent(now time.Time) []Poller {
	var ps []Poller
	for _, w := range p.byIdentity {
		if w.Open > 0 || now.Sub(w.LastSeen) <= p.ttl {
			ps = append(ps, *w)
		}
	}
	sort.Slice(ps, func(i, j int) bool { return ps[i].Identity < ps[j].Identity })
	return ps
}
