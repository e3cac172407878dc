package serve

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/matching"
)

// TestSignalWhileOpening does not wait for a store that takes long to open.
func TestSignalWhileOpening(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	hang, ended := make(chan struct{}), make(chan struct{})
	node, err := await(ctx, func() (*matching.Node, error) {
		defer close(ended)
		cancel() // the signal
		<-hang
		return nil, errors.New("nobody waits for this any more")
	})
	if node != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("await = %v, %v", node, err)
	}
	close(hang)
	<-ended
}

func TestAwaitReturnsWhatOpenReturns(t *testing.T) {
	want, broken := new(matching.Node), errors.New("broken")
	node, err := await(context.Background(), func() (*matching.Node, error) { return want, broken })
	if node != want || !errors.Is(err, broken) {
		t.Errorf("await = %p, %v", node, err)
	}
}

// TestFullDiskIsExplained with the code of a broken store, so that who supervises
// the process starts it again.
func TestFullDiskIsExplained(t *testing.T) {
	var s serving
	var e *exit.Error
	if err := s.explain(fmt.Errorf("open: %w", syscall.ENOSPC)); !errors.As(err, &e) || e.Code != exit.StoreBroken || e.Hint == "" {
		t.Errorf("explained as %v", err)
	}
	if err := s.explain(errors.New("else")); !errors.As(err, &e) || e.Code != exit.Failure {
		t.Errorf("explained as %v", err)
	}
}
