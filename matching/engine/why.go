package engine

import "fmt"

// Why says why a partition is unloaded.
type Why uint8

// The reasons to unload a partition.
const (
	Idle     Why = iota + 1 // nobody asked for it for a while
	Forced                  // an operator asked for it
	Lost                    // another run of a node holds it now
	Shutdown                // the node stops
)

// whyCount is one more than the last reason.
const whyCount = Shutdown + 1

// String returns the reason's name, as in metrics.
func (w Why) String() string {
	switch w {
	case Idle:
		return "idle"
	case Forced:
		return "forced"
	case Lost:
		return "lost"
	case Shutdown:
		return "shutdown"
	default:
		return fmt.Sprintf("why(%d)", uint8(w))
	}
}
