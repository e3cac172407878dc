package pebble

import (
	"context"
	"log/slog"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/taskring/taskring/matching/store/storetest"
)

func TestMain(m *testing.M) {
	runChild() // does not return in a child process of one of the tests
	goleak.VerifyTestMain(m)
}

// testOptions are production's, on another file system.
func testOptions(fs vfs.FS) Options {
	return Options{Dir: "data/store", FS: fs, Logger: slog.New(slog.DiscardHandler)}
}

func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func closeStore(tb testing.TB, s *Store) {
	tb.Helper()
	if err := s.Close(); err != nil {
		tb.Errorf("close: %v", err)
	}
}

// compact merges everything down to the last level.
func (s *Store) compact() error {
	return s.db.Compact(context.Background(), []byte{0}, []byte{0xff}, false)
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		o := testOptions(vfs.NewMem())
		s := open(t, o)
		return storetest.Harness{
			Store: s,
			Reopen: func() (storetest.Store, error) {
				if err := s.Close(); err != nil {
					return nil, err
				}
				again, err := Open(o)
				s = again
				return again, err
			},
			Flush:   func() error { return s.db.Flush() },
			Compact: func() error { return s.compact() },
		}
	})
}
