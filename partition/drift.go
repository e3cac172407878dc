package partition

import "strconv"

// Access is what a call wants of a partition.
type Access uint8

// Polls read, adds write. Calls that settle a task that was handed out, or look
// at a partition, are not checked at all.
const (
	Read Access = iota
	Write
)

// Drift says in what a caller's idea of the partition counts is out of date.
type Drift uint8

// The answers of [Counts.Check]. All but NoDrift make the caller pick a partition
// anew, by the counts that come with the answer.
const (
	// NoDrift: the call may go on.
	NoDrift Drift = iota
	// BeyondRead: the partition does not exist any more, or not yet.
	BeyondRead
	// Draining: the partition takes no new tasks.
	Draining
	// TooFarOff: the partition is fine, but the caller picks by counts that load
	// the partitions unevenly.
	TooFarOff
)

// String returns the answer in words, for logs and metrics.
func (d Drift) String() string {
	switch d {
	case NoDrift:
		return "no drift"
	case BeyondRead:
		return "beyond the read partitions"
	case Draining:
		return "draining"
	case TooFarOff:
		return "counts too far off"
	default:
		return "drift(" + strconv.Itoa(int(d)) + ")"
	}
}

// Check tells whether a call to p fits c, the counts in force. caller is what the
// caller picked by; a caller that does not know says zeros, which always fit.
//
// Only normal partitions are checked, and only by counts that are valid. Counts
// are too far off when they differ by more than 1 and by more than half of the
// smaller one: of 4, 3 to 6 pass; of 100, 67 to 150.
func (c Counts) Check(p ID, access Access, caller Counts) Drift {
	if p.Kind != Normal || !c.Valid() {
		return NoDrift
	}
	ours, theirs := c.Read, caller.Read
	if access == Write {
		ours, theirs = c.Write, caller.Write
	}
	switch {
	case p.Number >= c.Read:
		return BeyondRead
	case access == Write && p.Number >= c.Write:
		return Draining
	case caller.Valid() && tooFarOff(ours, theirs):
		return TooFarOff
	}
	return NoDrift
}

// tooFarOff reports whether two counts differ by more than 1 and their ratio lies
// outside 1/1.5 to 1.5. Counts of a stranger may be as large as they like.
func tooFarOff(a, b int32) bool {
	low, high := int64(min(a, b)), int64(max(a, b))
	return high-low > 1 && 2*high > 3*low
}
