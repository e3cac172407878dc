package partition

// BacklogCode is a number of tasks in one byte, rounded down. A count of tasks
// travels for each partition with every reply, so it has to be small; and whoever
// balances by it needs to know sizes, not numbers.
//
// Twelve codes for each doubling, which is at most 1/12, about 8 %, from one to the
// next:
//
//	code   tasks         code   tasks          code   tasks
//	0      0 to 31       12     384            36     1536
//	1      32            13     416            ...
//	2      64            ...                   254    469,762,048
//	...                  23     736            255    503,316,480 and more
//	11     352           24     768
//
// Up to code 23 a step is 32 tasks; from there on each group of twelve codes has
// steps twice as large as the one before: (12 + c mod 12) * 32 * 2^(c/12 - 1).
type BacklogCode uint8

const (
	// backlogUnit is the smallest figure that is told from none, in tasks.
	backlogUnit = 32
	// backlogSteps is the number of codes for a doubling.
	backlogSteps = 12
	// maxBacklogCode stands for its figure and all that is more.
	maxBacklogCode = 255
)

// EncodeBacklog returns the code of the largest figure that is not above tasks.
// A negative number counts as none.
func EncodeBacklog(tasks int64) BacklogCode {
	if tasks < backlogUnit {
		return 0
	}
	units, group := tasks/backlogUnit, int64(0)
	for units >= 2*backlogSteps {
		units >>= 1
		group++
	}
	return BacklogCode(min(group*backlogSteps+units, maxBacklogCode))
}

// Tasks returns the figure that c stands for.
func (c BacklogCode) Tasks() int64 {
	group, step := int64(c)/backlogSteps, int64(c)%backlogSteps
	if group == 0 {
		return step * backlogUnit
	}
	return (backlogSteps + step) * backlogUnit << (group - 1)
}

// Next returns the code of a figure that had code c before. It falls at once, as
// [EncodeBacklog] would, so that it never tells of more tasks than there are; but
// it rises by a single step only when the figure is half a step above where the
// new code begins. A figure that wavers around the border of two codes therefore
// keeps the lower one, and nobody is told of a change at every reply.
func (c BacklogCode) Next(tasks int64) BacklogCode {
	exact := EncodeBacklog(tasks)
	if exact == c+1 && c < maxBacklogCode {
		if floor := exact.Tasks(); tasks-floor < (floor-c.Tasks())/2 {
			return c
		}
	}
	return exact
}

// RecodeBacklogs returns the codes of the figures of partitions 0, 1, 2 and so on,
// in the form of [Counts.BacklogCodes]. previous are the codes before, which may be
// more or fewer: see [BacklogCode.Next]. It returns previous itself when nothing
// changed.
func RecodeBacklogs(previous string, tasks []int64) string {
	codes := make([]byte, len(tasks))
	for i, n := range tasks {
		var before BacklogCode
		if i < len(previous) {
			before = BacklogCode(previous[i])
		}
		codes[i] = byte(before.Next(n))
	}
	if string(codes) == previous {
		return previous
	}
	return string(codes)
}

// Backlog returns the reported figure of a partition, in tasks; known is false
// when the counts hold none for it.
func (c Counts) Backlog(number int32) (tasks int64, known bool) {
	if number < 0 || int(number) >= len(c.BacklogCodes) {
		return 0, false
	}
	return BacklogCode(c.BacklogCodes[number]).Tasks(), true
}
