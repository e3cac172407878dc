package partition

// Children returns the numbers of the children of p in the tree of a queue that
// is read from partitions 0 to read-1, as the half-open range [first, end); it is
// empty for a leaf. Degrees below 1 count as 1. See [ID.Parent].
func (p ID) Children(degree, read int32) (first, end int32) {
	if !p.Kind.Partitioned() {
		return 0, 0
	}
	// In 64 bits: the children of a high number may lie beyond all numbers.
	d := int64(max(degree, 1))
	low := min(int64(p.Number)*d+1, int64(read))
	high := min(int64(p.Number)*d+d, int64(read)-1) + 1
	return int32(low), int32(max(low, high))
}
