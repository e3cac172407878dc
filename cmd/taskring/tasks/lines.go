package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// runLines adds a task for each line of standard input.
func (a *adding) runLines(cmd *cobra.Command, q partition.Queue, options *matchingpb.TaskOptions) error {
	c, err := a.remote.Dial(nil)
	if err != nil {
		return err
	}
	defer c.Stop()
	s := &sender{client: c, queue: wire.EncodeQueue(q), options: options, lines: newIntake()}
	bar := newProgress(cmd.ErrOrStderr(), cmd.InOrStdin(), s)
	bar.start()
	err = s.run(cmd.Context(), cmd.InOrStdin(), a.outstanding)
	bar.stop()
	return a.report(cmd.OutOrStdout(), s.tally.sofar(), err)
}

// report prints the account, and turns an error into one that says where to go on.
func (a *adding) report(w io.Writer, done account, err error) error {
	var printed error
	if *a.format == output.JSON {
		printed = output.Line(w, done)
	} else if _, e := fmt.Fprintf(w, "added %s to %s\n", output.Count(done.Added, "task"), a.remote.Queue); e != nil {
		printed = fmt.Errorf("writing the result: %w", e)
	}
	if err == nil {
		return printed
	}
	err = a.remote.Explain(err, fmt.Sprintf("adding line %d", done.Resume))
	return &exit.Error{Code: exit.Of(err), Err: err, Hint: resumeHint(done, errors.Is(err, task.Invalid))}
}

// resumeHint says what was added and where to go on; bad says that the line to go
// on from can never be added as it is.
func resumeHint(done account, bad bool) string {
	var hints []string
	switch {
	case done.Resume == 2:
		hints = append(hints, "line 1 is surely added")
	case done.Resume > 2:
		hints = append(hints, fmt.Sprintf("lines 1 to %d are surely added", done.Resume-1))
	default:
		hints = append(hints, "no line from the start is surely added")
	}
	if bad {
		hints = append(hints, fmt.Sprintf("mend line %d and go on from it, or skip it and go on from line %d: %s",
			done.Resume, done.Resume+1, goOn(done.Resume+1)))
	} else {
		hints = append(hints, fmt.Sprintf("go on from line %d: %s", done.Resume, goOn(done.Resume)))
	}
	if done.Behind > 0 {
		hints = append(hints, fmt.Sprintf("%s behind line %d were added too: they come twice when they are added again",
			output.Count(done.Behind, "line"), done.Resume))
	}
	if done.Unknown > 0 {
		hints = append(hints, fmt.Sprintf("the answer for %s was lost; they may come twice", output.Count(done.Unknown, "line")))
	}
	return strings.Join(hints, "\n")
}

// goOn is the command that adds the lines from one on.
func goOn(line int64) string {
	return fmt.Sprintf("tail -n +%d FILE | taskring task add --lines ...", line)
}

// sender adds lines in batches.
type sender struct {
	client  adder
	queue   *matchingpb.TaskQueuePartition
	options *matchingpb.TaskOptions
	lines   *intake
	tally   tally
}

// run adds the lines of r with so many batches under way, and returns once each
// of them is settled. It stops at the first line that could not be added, and
// when ctx ends; what is under way then is still waited for.
func (s *sender) run(ctx context.Context, r io.Reader, outstanding int) error {
	filling, stop := context.WithCancel(ctx)
	defer stop()
	go s.lines.fill(filling, r) // ends with its input; one that never ends is left to the end of the process

	slots := make(chan struct{}, outstanding)
	var batches sync.WaitGroup
	var stopped error
	for s.tally.failed() == nil && stopped == nil {
		slots <- struct{}{} // each batch has its deadline
		b, err := s.lines.take(ctx)
		if err != nil {
			stopped = err
			break
		}
		if s.tally.failed() != nil { // while waiting for lines
			break
		}
		s.tally.took(len(b.lines))
		batches.Go(func() {
			s.tally.settle(b.first, s.add(ctx, b.lines))
			<-slots
		})
	}
	batches.Wait()
	if err := s.tally.failed(); err != nil {
		return err
	}
	if errors.Is(stopped, io.EOF) {
		return nil
	}
	return stopped
}
