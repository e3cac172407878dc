package work

import (
	"bytes"
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
	_, err := l.w.Write(b)
	return err
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
	if o.alone {
		return o.writeAlone(p, end)
	}
	if end > 0 {
		whole := p[:end]
		if len(o.begun) > 0 {
			whole = append(o.begun, whole...)
		}
		if err := o.shared.writeWhole(whole); err != nil {
			return 0, err
		}
		o.begun = o.begun[:0]
	}
	o.begun = append(o.begun, p[end:]...)
	if len(o.begun) <= heldLine {
		return len(p), nil
	}
	o.shared.mu.Lock()
	o.alone = true
	_, err := o.shared.w.Write(o.begun)
	o.begun = nil
	return len(p), err
}

func (o *taskOutput) writeAlone(p []byte, end int) (int, error) {
	if end == 0 {
		return o.shared.w.Write(p)
	}
	_, err := o.shared.w.Write(p[:end])
	o.alone = false
	o.shared.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return o.keep(p, end)
}

func (o *taskOutput) keep(p []byte, end int) (int, error) {
	o.begun = append(o.begun, p[end:]...)
	return len(p), nil
}

// flush ends a line that its task did not end.
func (o *taskOutput) flush() error {
	if o.alone {
		_, err := o.shared.w.Write([]byte{'\n'})
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
