package ring

import (
	"github.com/buraksezer/consistent"
)

// Builder builds one ring after the other as members change. One goroutine uses
// it, and hands the rings to readers by an atomic pointer.
type Builder struct {
	format  Format
	current *Ring
	locate  locator
}

// NewBuilder returns a Builder whose current ring is empty. The error names each
// field of the format that is out of its bounds.
func NewBuilder(f Format) (*Builder, error) {
	if err := f.Validate(); err != nil {
		return nil, err
	}
	return &Builder{format: f, current: emptyRing(f), locate: consistent.New}, nil
}

func emptyRing(f Format) *Ring { return &Ring{format: f, fingerprint: fingerprintOf(nil)} }

// Current returns the ring that was built last, at first an empty one.
func (b *Builder) Current() *Ring { return b.current }

// Build makes the ring of these nodes the current one and returns it. When only
// addresses or run ids changed the new ring shares the table of the last one and
// takes no time. With an error, also one for a panic of the library, the current
// ring stays what it was, and is returned with it: it is to be used on.
func (b *Builder) Build(nodes []Node) (*Ring, error) {
	nodes, err := normal(nodes, b.format.MaxPoints)
	if err != nil {
		return b.current, err
	}
	next := emptyRing(b.format)
	switch {
	case len(nodes) == 0:
	case samePlaces(nodes, b.current.nodes):
		next.nodes, next.table, next.fingerprint = nodes, b.current.table, b.current.fingerprint
	default:
		next.nodes, next.fingerprint = nodes, fingerprintOf(nodes)
		if next.table, err = newTable(b.format, nodes, b.locate); err != nil {
			return b.current, err
		}
	}
	b.current = next
	return next, nil
}
