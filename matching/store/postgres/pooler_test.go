package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// throughPooler returns the options for a store behind a pooler.
func throughPooler(tb testing.TB, o Options) Options {
	tb.Helper()
	_, rest, _ := strings.Cut(o.DSN, " ") // without the host
	o.DSN = pg.Pooler(tb) + " " + rest
	o.Pooler = true
	return o
}

func TestConformanceBehindPooler(t *testing.T) {
	stories(t, 5)
	conformance(t, throughPooler(t, testOptions(pg.Database(t))))
}

// TestPoolerIsRecognised: without the option the error says which one is missing.
func TestPoolerIsRecognised(t *testing.T) {
	o := throughPooler(t, inNewSchema(testOptions(pg.Database(t))))
	migrate(t, o)
	o.Pooler = false
	s, err := Open(context.Background(), o)
	if err == nil {
		closeStore(t, s)
	}
	if !errors.Is(err, ErrPooler) || !strings.Contains(err.Error(), "Options.Pooler") {
		t.Errorf("Open = %v, want ErrPooler", err)
	}
}
