package ring

import (
	"errors"
	"fmt"
	"math"
	"strconv"
)

// Constants of the ring format. A change of any of them, or of how keys are
// built, places partitions elsewhere: it is a new formatVersion, announced, with
// an instant at which the whole cluster switches.
const (
	// formatVersion counts the changes of what the fields of Format do not say.
	formatVersion = 1
	// hashName is the hash of names, slots and keys.
	hashName = "xxhash64"
	// library places the owners of the slots. Another version of it gives other
	// owners to more than half of the slots, so go.mod requires exactly this one.
	library = "consistent/v1.0.0"
	// salt sets the draws of the positions of a list apart from each other.
	salt = 0x9e3779b97f4a7c15
	// Positions is how many nodes of a list are drawn position by position; from
	// there on a list goes in rendezvous order.
	Positions = 16
	// keyVersion counts the changes of how partitions are turned into keys.
	keyVersion = 1
)

// Bounds of the fields of a [Format].
const (
	maxSlots       = 1 << 20
	maxReplication = 1000
	maxLoad        = 1000
	maxMaxPoints   = math.MaxUint16
)

// Format is what all nodes and clients of a cluster must agree on for their
// rings to agree. It belongs to the cluster, not to a node.
type Format struct {
	// Slots is how many slots keys are hashed to, 1 to 1,048,576. A prime, and at
	// least 20 times the number of points; see [Ring.Crowded].
	Slots int
	// Replication is how many anchors a point has on the circle from which the
	// owners of the slots are taken, 1 to 1,000.
	Replication int
	// Load bounds the slots of one point: their mean times Load, rounded up. At
	// least 1 (and below 1,000); nearer to 1 is more even and moves more.
	Load float64
	// MaxPoints is the largest sum of the weights of all nodes, 1 to 65,535. The
	// time to build a ring grows with its square: some seconds at 1,024.
	MaxPoints int
}

// DefaultFormat returns the format of a cluster that sets nothing.
func DefaultFormat() Format {
	return Format{Slots: 4093, Replication: 50, Load: 1.15, MaxPoints: 1024}
}

// Validate reports every field that is out of its bounds. Zero is: a format is
// given whole, see [DefaultFormat].
func (f Format) Validate() error {
	var errs []error
	for _, field := range []struct {
		name       string
		value, max int
	}{
		{"slots", f.Slots, maxSlots},
		{"replication", f.Replication, maxReplication},
		{"max points", f.MaxPoints, maxMaxPoints},
	} {
		if field.value < 1 || field.value > field.max {
			errs = append(errs, fmt.Errorf("%s is %d, it has to be 1 to %d", field.name, field.value, field.max))
		}
	}
	if !(f.Load >= 1 && f.Load <= maxLoad) { // written so that NaN is refused
		errs = append(errs, fmt.Errorf("load is %v, it has to be 1 to %d", f.Load, maxLoad))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("ring format: %w", err)
	}
	return nil
}

// Fingerprint returns the format as one line of text. Two processes with equal
// fingerprints give a key to the same node whenever they see the same members;
// processes with different ones must not work together, and the text tells in
// what they differ.
func (f Format) Fingerprint() string {
	return fmt.Sprintf("ring/%d slots=%d replication=%d load=%s max-points=%d positions=%d hash=%s salt=%x library=%s keys=%d",
		formatVersion, f.Slots, f.Replication, strconv.FormatFloat(f.Load, 'g', -1, 64), f.MaxPoints,
		Positions, hashName, uint64(salt), library, keyVersion)
}

// ErrFormat is matched by the error of [Format.Match].
var ErrFormat = errors.New("another ring format")

// Match returns an error that matches [ErrFormat] and names both formats, when
// theirs, the fingerprint of another process or of a store, is not that of f.
func (f Format) Match(theirs string) error {
	if ours := f.Fingerprint(); ours != theirs {
		return fmt.Errorf("%w: this process has %q, the cluster has %q: give it the same ring settings and version", ErrFormat, ours, theirs)
	}
	return nil
}
