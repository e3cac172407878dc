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

var whyNames = [...]string{Idle: "idle", Forced: "forced", Lost: "lost", Shutdown: "shutdown"}

// String returns the reason's name, as in metrics.
func (w Why) String() string {
	if int(w) < len(whyNames) && w != 0 {
		return whyNames[w]
	}
	return fmt.Sprintf("why(%d)", uint8(w))
}
