package work

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// heldLine is the longest line that is kept back until it is whole.
const heldLine = 256 << 10

// lines is an output that many tasks share without one's output standing inside
// a line of another's. Each task writes through a [taskOutput] of its own.
type lines struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

// writeWhole writes b, which ends a line, in one go.
func (l *lines) writeWhole(b []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writeLocked(b)
}

func (l *lines) writeLocked(b []byte) error {
	if _, err := l.w.Write(b); err != nil {
		return fmt.Errorf("passing on output: %w", err)
	}
	return nil
}

// taskOutput is the way of one task to a shared output. It passes on whole
// lines and keeps the beginning of the last one back. A line longer than
// [heldLine] is not kept: the task holds the output alone until the line ends,
// and others wait. Not for concurrent use; flush it in the end.
type taskOutput struct {
	shared *lines
	begun  []byte // beginning of a line
	alone  bool   // shared.mu is held
}

// Write passes on what ends a line and keeps the rest.
func (o *taskOutput) Write(p []byte) (int, error) {
	end := bytes.LastIndexByte(p, '\n') + 1
	var err error
	switch {
	case o.alone:
		err = o.writeAlone(p, end)
	case end > 0:
		err = o.shared.writeWhole(append(o.begun, p[:end]...))
		o.begun = append(o.begun[:0], p[end:]...)
	default:
		o.begun = append(o.begun, p...)
	}
	if err == nil && len(o.begun) > heldLine {
		o.shared.mu.Lock()
		o.alone = true
		err = o.shared.writeLocked(o.begun)
		o.begun = nil
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// writeAlone writes on in the line that was begun, up to its end if p holds it.
func (o *taskOutput) writeAlone(p []byte, end int) error {
	if end == 0 {
		return o.shared.writeLocked(p)
	}
	err := o.shared.writeLocked(p[:end])
	o.alone = false
	o.shared.mu.Unlock()
	o.begun = append(o.begun, p[end:]...)
	return err
}

// flush ends a line that its task did not end.
func (o *taskOutput) flush() error {
	if o.alone {
		err := o.shared.writeLocked([]byte{'\n'})
		o.alone = false
		o.shared.mu.Unlock()
		return err
	}
	if len(o.begun) == 0 {
		return nil
	}
	err := o.shared.writeWhole(append(o.begun, '\n'))
	o.begun = nil
	return err
}

// tail keeps the end of what is written to it.
type tail struct {
	limit int
	end   []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.end = append(t.end, p...)
	if over := len(t.end) - t.limit; over > 0 {
		t.end = append(t.end[:0], t.end[over:]...)
	}
	return len(p), nil
}
