package pebble

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	pebbledb "github.com/cockroachdb/pebble/v2"
)

// ExitStoreBroken is the status with which the process ends when the store can
// no longer tell what is durable: an error of the write-ahead log, or a Pebble
// that gave up. 74 is EX_IOERR of sysexits.h. Starting again is the recovery.
const ExitStoreBroken = 74

const (
	logInterval   = time.Second // between two messages about the same trouble
	lastWordsTime = time.Second // for logging why the process ends
)

// logger is Pebble's voice: it turns its messages into ours, errors at most one
// a second, and ends the process on a fatal one. All methods may be called
// concurrently.
type logger struct {
	log     *slog.Logger
	onFatal func(string)

	dying sync.Once

	mu struct {
		sync.Mutex
		last       time.Time
		suppressed int
	}
}

var _ pebbledb.Logger = (*logger)(nil)

func newLogger(o *Options) *logger {
	return &logger{log: o.Logger.With("component", "store"), onFatal: o.OnFatal}
}

// Infof takes what Pebble says in passing.
func (l *logger) Infof(format string, args ...any) {
	l.log.Debug(fmt.Sprintf(format, args...))
}

// Errorf takes errors that Pebble goes on after.
func (l *logger) Errorf(format string, args ...any) {
	l.throttled(slog.LevelError, fmt.Sprintf(format, args...))
}

// Fatalf takes errors that Pebble does not expect to return from. It never does:
// a commit that failed would be acknowledged.
func (l *logger) Fatalf(format string, args ...any) {
	l.fatal(fmt.Sprintf(format, args...))
}

// throttled logs a message unless one was logged within the last second, and
// says how many were passed over.
func (l *logger) throttled(level slog.Level, message string) {
	now := time.Now()
	l.mu.Lock()
	if !l.mu.last.IsZero() && now.Sub(l.mu.last) < logInterval {
		l.mu.suppressed++
		l.mu.Unlock()
		return
	}
	suppressed := l.mu.suppressed
	l.mu.last, l.mu.suppressed = now, 0
	l.mu.Unlock()
	l.log.Log(context.Background(), level, message, "suppressed", suppressed)
}

// fatal says why and ends the process. Whoever calls it while it runs waits for
// the end too. A log that blocks does not keep the process alive.
func (l *logger) fatal(reason string) {
	l.dying.Do(func() {
		said := make(chan struct{})
		go func() {
			defer close(said)
			l.log.Error("the store is broken, the process ends; starting it again recovers what is durable",
				"reason", reason, "exit_code", ExitStoreBroken)
			if l.onFatal != nil {
				l.onFatal(reason)
			}
		}()
		select {
		case <-said:
		case <-time.After(lastWordsTime):
		}
		os.Exit(ExitStoreBroken)
	})
}

// listener picks the events that an operator wants to know of. Corruption in a
// file of old rows is an error of the reads that meet it, not the end of the
// process: it would meet it again after each start.
func (l *logger) listener(b *background) *pebbledb.EventListener {
	return &pebbledb.EventListener{
		FlushEnd: func(info pebbledb.FlushInfo) {
			if info.Err == nil {
				b.succeeded()
			}
		},
		CompactionEnd: func(info pebbledb.CompactionInfo) {
			if info.Err == nil {
				b.succeeded()
			}
		},
		BackgroundError: func(err error) {
			b.failed(err)
			l.throttled(slog.LevelError, "background work failed, it is tried again: "+err.Error())
		},
		DataCorruption: func(info pebbledb.DataCorruptionInfo) {
			l.throttled(slog.LevelError, "a file is corrupt: "+info.String())
		},
		WriteStallBegin: func(info pebbledb.WriteStallBeginInfo) {
			l.throttled(slog.LevelWarn, "commits wait for the disk: "+info.Reason)
		},
	}
}

// diskSlow takes calls of the file system that hang.
func (l *logger) diskSlow(info pebbledb.DiskSlowInfo) {
	l.throttled(slog.LevelWarn, "the disk is slow: "+info.String())
}
