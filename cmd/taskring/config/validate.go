package config

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
)

// shownCheck is what validate prints as JSON.
type shownCheck struct {
	File     string         `json:"file"`
	Valid    bool           `json:"valid"`
	Hash     string         `json:"hash,omitempty"`
	Entries  int            `json:"entries"`
	Problems []shownProblem `json:"problems"`
	Warnings []shownProblem `json:"warnings"`
}

// shownProblem is a place of a file and what is wrong there, as JSON.
type shownProblem struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func validateCommand(registry *dynamicconfig.Registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Say everything that is wrong with a file",
		Long: `Check a dynamic-config file as a node of this version would. Each mistake is a
line FILE:LINE:COLUMN: what is wrong. The exit code is 0 for a file that a node
would take, also with warnings, and 1 for one that it would refuse.`,
		Example: "  taskring config validate settings.yaml",
		Args:    cobra.ExactArgs(1),
	}
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return validate(cmd.OutOrStdout(), args[0], registry, isJSON(format))
	}
	return cmd
}

func validate(w io.Writer, path string, registry *dynamicconfig.Registry, asJSON bool) error {
	snapshot, err := file.Load(path, registry)
	var problems dynamicconfig.Problems
	if err != nil && !errors.As(err, &problems) {
		if !asJSON {
			return err
		}
		problems = dynamicconfig.Problems{{Text: err.Error()}} // a program reads an answer in any case
	}
	check := shownCheck{
		File: path, Valid: err == nil, Hash: snapshot.Hash(), Entries: len(snapshot.Entries()),
		Problems: shownProblemsOf(problems), Warnings: shownProblemsOf(snapshot.Warnings()),
	}
	if asJSON {
		err = output.Line(w, check)
	} else {
		err = wrapWriting(check.write(w))
	}
	if err == nil && !check.Valid {
		err = &exit.Error{Code: exit.Failure, Err: fmt.Errorf("%s is refused as a whole, it has %s", path, mistakes(len(problems)))}
	}
	return err
}

func shownProblemsOf(problems dynamicconfig.Problems) []shownProblem {
	shown := make([]shownProblem, len(problems))
	for i, p := range problems {
		shown[i] = shownProblem{p.Line, p.Column, p.Key, p.Text}
	}
	return shown
}

func (c shownCheck) write(w io.Writer) error {
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	for _, p := range c.Problems {
		line("%s: %s", p.at(c.File), p.text())
	}
	for _, p := range c.Warnings {
		line("%s: warning: %s", p.at(c.File), p.text())
	}
	if c.Valid {
		line("%s: valid, %s, hash %s", c.File, count(c.Entries, "entry", "entries"), c.Hash)
	}
	return errors.Join(errs...)
}

func (p shownProblem) text() string {
	return dynamicconfig.Problem{Key: p.Key, Text: p.Message}.Message()
}

// at returns the place in the form that editors know how to open.
func (p shownProblem) at(path string) string {
	if p.Line > 0 {
		path += fmt.Sprintf(":%d", p.Line)
	}
	if p.Column > 0 {
		path += fmt.Sprintf(":%d", p.Column)
	}
	return path
}
