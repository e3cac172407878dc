package partition

import (
	"fmt"
	"strconv"
	"strings"
)

// Kind says what a partition is for. It is part of an [ID], so that two callers
// who disagree about the kind of one name never share a loaded partition. Routing
// keys, stored rows and tokens hold no kind: what is stored is Normal.
type Kind uint8

// The kinds. The zero value is Normal, which is what callers mean who say nothing.
//
//	kind     partitions  named by    holds                     forwards, has children, scales
//	Normal   0..n-1      the user    tasks, as long as needed  yes
//	Sticky   only 0      the worker  tasks for that worker     no
//	Control  only 0      the worker  requests that it answers  no
const (
	// Normal is a partition of a queue that users name.
	Normal Kind = iota
	// Sticky belongs to one worker, which keeps state for the tasks that come
	// back to it. It stands beside a normal queue, which takes over when the
	// worker is gone.
	Sticky
	// Control carries requests of the server to one worker, as long as the worker
	// process lives.
	Control
)

// Valid reports whether k is one of the known kinds.
func (k Kind) Valid() bool { return k <= Control }

// Partitioned reports whether queues of the kind have more than the root, so that
// calls to a whole queue are balanced over its partitions.
func (k Kind) Partitioned() bool { return k == Normal }

// String returns the lower-case name that commands and logs use.
func (k Kind) String() string {
	switch k {
	case Normal:
		return "normal"
	case Sticky:
		return "sticky"
	case Control:
		return "control"
	default:
		return "kind(" + strconv.Itoa(int(k)) + ")"
	}
}

// ParseKind reads the form that [Kind.String] writes; an empty string is Normal.
func ParseKind(s string) (Kind, error) {
	if s == "" {
		return Normal, nil
	}
	for k := Normal; k <= Control; k++ {
		if strings.EqualFold(s, k.String()) {
			return k, nil
		}
	}
	return 0, fmt.Errorf("partition kind %q is not one of normal, sticky, control", s)
}

// Only returns the single partition of a queue of a kind that has no others.
func (q Queue) Only(k Kind) ID { return ID{Queue: q, Kind: k} }

// validateKind reports why p cannot be a partition of its kind.
func (p ID) validateKind() error {
	switch {
	case !p.Kind.Valid():
		return fmt.Errorf("partition kind %d is not one of 0 (normal), 1 (sticky), 2 (control)", p.Kind)
	case !p.Kind.Partitioned() && p.Number != 0:
		return fmt.Errorf("partition %d of a %v queue: it has partition 0 only", p.Number, p.Kind)
	}
	return nil
}

// ValidateNormal reports why a call for p cannot say that name is the normal
// queue beside it: only sticky partitions stand beside one. An empty name says
// nothing and is always fine.
func (p ID) ValidateNormal(name string) error {
	if name == "" {
		return nil
	}
	if p.Kind != Sticky {
		return fmt.Errorf("normal queue %q named for a %v queue: only a sticky queue stands beside a normal one", name, p.Kind)
	}
	if err := ValidateName(name); err != nil {
		return fmt.Errorf("normal queue name %w", err)
	}
	return nil
}
