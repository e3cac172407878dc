package dynamicconfig

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.yaml.in/yaml/v3"

	"github.com/taskring/taskring/partition"
)

// Gradual is a value that changes from an old one to a new one key by key. The
// zero value is constantly the zero value of T.
//
// A key is whatever the change moves, such as the routing key of a partition. Its
// hash is a place h in [0, 2^64), the same in every process, and from it follow
//
//	between two times   flip = start + floor(h * (end - start) / 2^64), in ns
//	for a percentage    new iff floor(h * 10^8 / 2^64) < percent * 10^6
//
// both in integers, so that no two machines round differently. For an hour from
// 10:00 on, a key with h = 0.25 * 2^64 flips at 10:15:00.
//
// Laws:
//
//	G1  A key flips once, from old to new, and never back as time goes on.
//	G2  Before start every key has the old value; at end every key has the new one.
//	G3  A key that is new at one percentage is new at every higher one; 0 is nobody, 100 everybody.
//	G4  The same key, times and percentage give the same answer everywhere.
type Gradual[T any] struct {
	was, is    T
	start, end time.Time
	part       uint64 // of partScale, for a percentage
	kind       gradualKind
}

type gradualKind uint8

const (
	constant gradualKind = iota
	timed
	percentage
)

// partScale is a whole; percentages have six digits behind the point.
const partScale = 100_000_000

// Constant returns a value that does not change.
func Constant[T any](value T) Gradual[T] { return Gradual[T]{was: value, is: value} }

// ChangeBetween returns a change from was to is between two times, the first of
// which has to be before the second; both between the years 1970 and 2200.
func ChangeBetween[T any](was, is T, start, end time.Time) (Gradual[T], error) {
	for _, t := range []time.Time{start, end} {
		if year := t.UTC().Year(); year < 1970 || year > 2200 {
			return Gradual[T]{}, fmt.Errorf("the year of %s is not between 1970 and 2200", t.Format(time.RFC3339))
		}
	}
	if !start.Before(end) {
		return Gradual[T]{}, fmt.Errorf("the start %s is not before the end %s", start.Format(time.RFC3339), end.Format(time.RFC3339))
	}
	return Gradual[T]{was: was, is: is, start: start.Round(0), end: end.Round(0), kind: timed}, nil
}

// ChangeFor returns a change from was to is for a percentage of the keys, 0 to 100.
func ChangeFor[T any](was, is T, percent float64) (Gradual[T], error) {
	if math.IsNaN(percent) || percent < 0 || percent > 100 {
		return Gradual[T]{}, fmt.Errorf("percent %v is not between 0 and 100", percent)
	}
	part := uint64(math.Round(percent * (partScale / 100)))
	return Gradual[T]{was: was, is: is, part: part, kind: percentage}, nil
}

// QueueKey returns the key of a task queue for changes that go by queue: the
// routing key of its root, "namespace:name:type".
func QueueKey(q partition.Queue) string { return q.Partition(0).RoutingKey() }

// Value returns the value of a key at a time.
func (g Gradual[T]) Value(key string, now time.Time) T {
	if g.Changed(key, now) {
		return g.is
	}
	return g.was
}

// ValueOf is [Gradual.Value] for a key that stands in a buffer; it does not keep it.
func (g Gradual[T]) ValueOf(key []byte, now time.Time) T {
	if g.changed(xxhash.Sum64(key), now) {
		return g.is
	}
	return g.was
}

// Changed reports whether a key has the new value at a time. A constant one has
// had it ever since.
func (g Gradual[T]) Changed(key string, now time.Time) bool {
	return g.changed(xxhash.Sum64String(key), now)
}

func (g Gradual[T]) changed(hash uint64, now time.Time) bool {
	switch g.kind {
	case timed:
		return !now.Before(g.flip(hash))
	case percentage:
		place, _ := bits.Mul64(hash, partScale)
		return place < g.part
	default:
		return true
	}
}

// When returns the instant at which a key flips, and false when time changes
// nothing.
func (g Gradual[T]) When(key string) (time.Time, bool) {
	if g.kind != timed {
		return time.Time{}, false
	}
	return g.flip(xxhash.Sum64String(key)), true
}

// Span returns when the first key may flip and when all have, and false when
// time changes nothing.
func (g Gradual[T]) Span() (start, end time.Time, ok bool) { return g.start, g.end, g.kind == timed }

// Changes reports whether there are two values: else it is constant, whatever the
// key and the time.
func (g Gradual[T]) Changes() bool { return g.kind != constant }

// Values returns the old and the new value; they are the same in a constant one.
func (g Gradual[T]) Values() (was, is T) { return g.was, g.is }

func (g Gradual[T]) flip(hash uint64) time.Time {
	offset, _ := bits.Mul64(hash, uint64(g.end.Sub(g.start)))
	return g.start.Add(time.Duration(offset))
}

// GradualOf makes a setting of a scalar kind one that changes gradually. A plain
// value in a file is constant.
func GradualOf[T any](spec Spec[T]) Spec[Gradual[T]] { return gradualSpec[T]{spec} }

type gradualSpec[T any] struct{ of Spec[T] }

func (s gradualSpec[T]) Type() Type[Gradual[T]] {
	of := s.of.Type()
	about := of.about
	about.Type = "gradual " + about.Type
	about.Gradual = true
	return Type[Gradual[T]]{
		about: about, fallback: Constant(of.fallback),
		read: func(p *parser, node *yaml.Node) (Gradual[T], bool) { return readGradual(p, node, of) },
		check: func(g Gradual[T]) error {
			if !of.scalar {
				return fmt.Errorf("a %s cannot change gradually, only a scalar can", of.about.Type)
			}
			return errors.Join(of.check(g.was), of.check(g.is))
		},
		format: func(g Gradual[T]) string { return formatGradual(g, of) },
		equal: func(a, b Gradual[T]) bool {
			return a.kind == b.kind && of.equal(a.was, b.was) && of.equal(a.is, b.is) &&
				a.start.Equal(b.start) && a.end.Equal(b.end) && a.part == b.part
		},
	}
}

// The words of a gradual change.
const (
	wordOld     = "old"
	wordNew     = "new"
	wordStart   = "start"
	wordEnd     = "end"
	wordPercent = "percent"
)

func readGradual[T any](p *parser, node *yaml.Node, of Type[T]) (Gradual[T], bool) {
	node = follow(node)
	if node.Kind != yaml.MappingNode {
		value, ok := of.read(p, node)
		return Constant(value), ok
	}
	before := len(p.problems)
	var was, is T
	var start, end time.Time
	var percent float64
	var seen []string
	p.mapping(node, []string{wordOld, wordNew, wordStart, wordEnd, wordPercent}, func(word string, value *yaml.Node) {
		seen = append(seen, word)
		switch word {
		case wordOld:
			was, _ = of.read(p, value)
		case wordNew:
			is, _ = of.read(p, value)
		case wordStart:
			start = p.time(word, value)
		case wordEnd:
			end = p.time(word, value)
		default:
			percent = p.percent(value)
		}
	})
	p.checkWords(node, seen)
	if len(p.problems) > before {
		return Gradual[T]{}, false
	}
	var g Gradual[T]
	var err error
	if slices.Contains(seen, wordPercent) {
		g, err = ChangeFor(was, is, percent)
	} else {
		g, err = ChangeBetween(was, is, start, end)
	}
	if err != nil {
		p.refusef(node, "%v", err)
	}
	return g, err == nil
}

// checkWords wants old and new with either start and end or percent.
func (p *parser) checkWords(node *yaml.Node, seen []string) {
	wanted := []string{wordOld, wordNew, wordStart, wordEnd}
	if slices.Contains(seen, wordPercent) {
		wanted = wanted[:2]
		if slices.Contains(seen, wordStart) || slices.Contains(seen, wordEnd) {
			p.refusef(node, "a gradual change has either %s and %s or %s", wordStart, wordEnd, wordPercent)
		}
	}
	for _, word := range wanted {
		if !slices.Contains(seen, word) {
			p.refusef(node, "the gradual change has no %s", word)
		}
	}
}

func (p *parser) time(word string, node *yaml.Node) time.Time {
	t, err := time.Parse(time.RFC3339, node.Value)
	if node.Kind != yaml.ScalarNode || err != nil {
		p.refusef(node, "%s: %s is not a time with date and zone such as 2026-12-01T10:00:00Z", word, say(node))
		return time.Time{}
	}
	return t
}

func (p *parser) percent(node *yaml.Node) float64 {
	percent, err := parseFloat(node)
	if err != nil {
		p.refusef(node, "%s: %v", wordPercent, err)
	}
	return percent
}

func formatGradual[T any](g Gradual[T], of Type[T]) string {
	change := "{old: " + of.format(g.was) + ", new: " + of.format(g.is)
	switch g.kind {
	case timed:
		return change + ", start: " + g.start.Format(time.RFC3339Nano) + ", end: " + g.end.Format(time.RFC3339Nano) + "}"
	case percentage:
		return change + ", percent: " + strconv.FormatFloat(float64(g.part)*100/partScale, 'f', -1, 64) + "}"
	default:
		return of.format(g.is)
	}
}
