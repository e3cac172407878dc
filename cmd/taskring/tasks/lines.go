package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
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
	} else if _, e := fmt.Fprintf(w, "added %d tasks to %s\n", done.Added, a.remote.Queue); e != nil {
		printed = fmt.Errorf("writing the result: %w", e)
	}
	if err == nil {
		return printed
	}
	err = a.remote.Explain(err, fmt.Sprintf("adding line %d", done.Resume))
	return &exit.Error{Code: exit.Of(err), Err: err, Hint: resumeHint(done)}
}

func resumeHint(done account) string {
	hint := fmt.Sprintf("lines 1 to %d are surely added; go on from line %d: tail -n +%d FILE | taskring task add --lines ...",
		done.Resume-1, done.Resume, done.Resume)
	if done.Resume == 1 {
		hint = "no line from the start is surely added; go on from line 1"
	}
	if done.Behind > 0 {
		hint += fmt.Sprintf("\nof the lines behind it %d were added too; they will come twice", done.Behind)
	}
	if done.Unknown > 0 {
		hint += fmt.Sprintf("\nof %d lines the answer was lost; they may come twice", done.Unknown)
	}
	return hint
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
