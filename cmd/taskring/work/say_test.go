package work

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/matching/task"
)

func TestFailureLine(t *testing.T) {
	now := time.Unix(1000, 0)
	ended := errors.New("the command ended with exit status 3")
	for want, f := range map[string]client.Failure{
		"task 7 failed, attempt 2: the command ended with exit status 3; tried again in 2s\n":               {Err: ended, Next: now.Add(2 * time.Second)},
		"task 7 failed, attempt 2: the command ended with exit status 3; it is a dead letter now\n":         {Err: ended, Dead: true},
		"task 7 failed, attempt 2: the command ended with exit status 3: why; tried again in 0s\n":          {Err: failure(ended, []byte("first\nwhy\n")), Next: now.Add(-time.Second)},
		"task 7 failed, attempt 2: the command ended with exit status 3: a␣[1mb; it is a dead letter now\n": {Err: failure(ended, []byte("a\x1b[1mb")), Dead: true},
	} {
		if got := string(failureLine(&client.Task{ID: 7, Attempt: 2}, f, now)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	long := failureLine(&client.Task{}, client.Failure{Err: errors.New(strings.Repeat("x", 5000)), Dead: true}, now)
	if len(long) > 400 {
		t.Errorf("a line of %d bytes", len(long))
	}
}

func TestSayKilled(t *testing.T) {
	for want, killed := range map[string][]task.ID{
		"": nil,
		"killed 1 task: 7; they come again when their leases end\n":     {7},
		"killed 2 tasks: 7, 9; they come again when their leases end\n": {7, 9},
	} {
		var b strings.Builder
		sayKilled(&b, killed)
		if b.String() != want {
			t.Errorf("got %q, want %q", b.String(), want)
		}
	}
}

// TestReasonKeepsItsCause: what the command said does not hide how it ended.
func TestReasonKeepsItsCause(t *testing.T) {
	ended := errors.New("ended")
	err := failure(fmt.Errorf("the command: %w", ended), []byte("why"))
	if !errors.Is(err, ended) || err.Error() != "the command: ended: why" {
		t.Errorf("got %v", err)
	}
}
