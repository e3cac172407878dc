package partition

// Counts says how many partitions of a queue are read from and written to.
// The zero value means "not known".
//
// Partitions [0, Write) take new tasks, partitions [0, Read) may hold tasks and
// are polled; Read >= Write >= 1 whenever the counts are known.
type Counts struct {
	Read  int32
	Write int32
	// BacklogCap is the backlog per partition above which writers look
	// elsewhere, in tasks; 0 means that writers do not look at backlogs.
	BacklogCap int64
	// BacklogCodes holds one coded backlog figure per partition, or nothing.
	BacklogCodes string
	// Managed tells that the server scales the partitions by itself. Counts
	// that are not managed come from settings.
	Managed bool
}

// Valid reports whether the counts are known and sane: 0 < Write <= Read.
func (c Counts) Valid() bool { return c.Write > 0 && c.Write <= c.Read }
