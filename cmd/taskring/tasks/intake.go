package tasks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/taskring/taskring/cmd/taskring/exit"
)

// Limits of what is read ahead and sent in one batch.
const (
	maxBatchLines = 1000
	maxBatchBytes = 1 << 20
	// maxLine bounds memory; the node's own limit is lower unless it was raised.
	maxLine = 16 << 20
)

// batch is lines that stand behind each other in the input.
type batch struct {
	first int64 // number of the first line, from 1
	lines [][]byte
}

// intake gathers lines while batches are under way. One goroutine fills it, one
// takes from it.
type intake struct {
	ready chan struct{} // capacity 1: there is something to take
	space chan struct{} // capacity 1: something was taken

	mu struct {
		sync.Mutex

		pending batch
		bytes   int   // of the pending lines
		read    int64 // bytes read in all, line ends included
		end     error // why no further line comes; nil while some may
	}
}

func newIntake() *intake {
	in := &intake{ready: make(chan struct{}, 1), space: make(chan struct{}, 1)}
	in.mu.pending.first = 1
	return in
}

// fill reads r to its end, or until ctx ends and a further line has come.
func (in *intake) fill(ctx context.Context, r io.Reader) {
	reader := bufio.NewReaderSize(r, 64<<10)
	for number := int64(1); ; number++ {
		line, size, err := readLine(reader)
		if err != nil && !errors.Is(err, io.EOF) {
			err = &exit.Error{Code: exit.Failure, Err: fmt.Errorf("reading line %d: %w", number, err)}
		}
		if err == nil {
			err = in.put(ctx, line, size)
		}
		if err != nil {
			in.finish(err)
			return
		}
	}
}

var errLineTooLong = fmt.Errorf("it is longer than %d bytes", maxLine)

// readLine returns the next line without its end, and how many bytes it took up.
func readLine(r *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, 0, errLineTooLong
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil || errors.Is(err, io.EOF) && len(line) > 0:
			return bytes.TrimSuffix(line, []byte{'\n'}), len(line), nil
		}
		return nil, 0, err //nolint:wrapcheck // io.EOF is the end of the lines; the caller says which line else
	}
}

// put adds a line, waiting for space as long as the pending batch is full.
func (in *intake) put(ctx context.Context, line []byte, size int) error {
	for !in.tryPut(line, size) {
		select {
		case <-in.space:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	notify(in.ready)
	return nil
}

func (in *intake) tryPut(line []byte, size int) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	p := &in.mu.pending
	if len(p.lines) >= maxBatchLines || len(p.lines) > 0 && in.mu.bytes+len(line) > maxBatchBytes {
		return false
	}
	p.lines = append(p.lines, line)
	in.mu.bytes += len(line)
	in.mu.read += int64(size)
	return true
}

func (in *intake) finish(err error) {
	in.mu.Lock()
	in.mu.end = err
	in.mu.Unlock()
	notify(in.ready)
}

// take returns what has been read since the last take, at least one line, and
// nothing more once ctx ended. At the end of the input the error is io.EOF; otherwise it says why reading or
// waiting stopped.
func (in *intake) take(ctx context.Context) (batch, error) {
	for {
		if ctx.Err() != nil {
			return batch{}, ctx.Err()
		}
		if taken, ok, err := in.tryTake(); ok || err != nil {
			return taken, err
		}
		select {
		case <-in.ready:
		case <-ctx.Done():
			return batch{}, ctx.Err()
		}
	}
}

func (in *intake) tryTake() (batch, bool, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	taken := in.mu.pending
	if len(taken.lines) == 0 {
		return batch{}, false, in.mu.end
	}
	in.mu.pending = batch{first: taken.first + int64(len(taken.lines))}
	in.mu.bytes = 0
	notify(in.space)
	return taken, true, nil
}

// bytesRead is how far into the input reading is.
func (in *intake) bytesRead() int64 {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.mu.read
}

// notify sets a signal that may be set already.
func notify(signal chan<- struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
