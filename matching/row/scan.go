package row

import (
	"errors"
	"fmt"

	"github.com/taskring/taskring/matching/task"
)

// Validate reports every reason why no store can answer the scan, joined into
// one error.
func (s Scan) Validate() error {
	var errs []error
	if s.Kind < Tasks || s.Kind > Dead {
		errs = append(errs, fmt.Errorf("scan of kind %d, the kinds are 1 (tasks) to 4 (dead)", s.Kind))
	}
	if s.Kind == Tasks && (s.Priority < task.MinPriority || s.Priority > task.MaxPriority) {
		errs = append(errs, fmt.Errorf("scan of tasks with priority %d, the priorities are %d to %d", s.Priority, task.MinPriority, task.MaxPriority))
	}
	if s.Items < 1 {
		errs = append(errs, fmt.Errorf("scan of %d items, ask for at least 1", s.Items))
	}
	return errors.Join(errs...)
}

// Reached reports whether rows of the given number and size reach a limit of
// the scan. A page ends with the row that does, so it is never empty for a
// limit's sake.
func (s Scan) Reached(rows, size int) bool {
	return rows >= s.Items || (s.Bytes > 0 && size >= s.Bytes)
}

// Size is about how many bytes the lease takes in memory; the byte limit of a
// scan counts with it. Tasks count with [task.Task.Size].
func (l *Lease) Size() int { return 160 + len(l.Identity) }
