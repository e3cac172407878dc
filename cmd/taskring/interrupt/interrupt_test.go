package interrupt

import (
	"context"
	"os"
	"syscall"
	"testing"
	"time"
)

// raise sends a signal to this process.
func raise(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(os.Getpid(), s); err != nil {
		t.Fatal(err)
	}
}

func await(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s does not happen", what)
	}
}

func TestFirstAndSecondSignal(t *testing.T) {
	ctx, stop := Watch(t.Context(), 42)
	defer stop()
	s, ok := ctx.Value(key{}).(*Signals)
	if !ok {
		t.Fatal("the context does not know its signals")
	}
	order := make(chan string, 3)
	ended := make(chan struct{})
	s.mu.Lock()
	s.end = func(code int) {
		if code != 42 {
			t.Errorf("the process ends with %d, want 42", code)
		}
		order <- "end"
		close(ended)
	}
	s.mu.Unlock()
	AtOnce(ctx, func() { order <- "last" })

	raise(t, syscall.SIGTERM)
	await(t, ctx.Done(), "the end of the context")
	select {
	case what := <-order:
		t.Fatalf("%q after the first signal", what)
	default:
	}
	raise(t, syscall.SIGINT)
	await(t, ended, "the end of the process")
	if first, second := <-order, <-order; first != "last" || second != "end" {
		t.Errorf("the order is %s, %s", first, second)
	}
}

func TestStopEndsTheContext(t *testing.T) {
	ctx, stop := Watch(t.Context(), 1)
	stop()
	stop()
	await(t, ctx.Done(), "the end of the context")
}

func TestAtOnceWithoutSignals(t *testing.T) {
	AtOnce(context.Background(), func() { t.Error("called") })
}
