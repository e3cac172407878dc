// Package dynamic is how the commands that run for long are given dynamic
// settings: the settings that there are, and the flags --dynamic-config and
// --dynamic-config-on-error.
package dynamic

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/client"
	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
	"github.com/taskring/taskring/matching"
)

// Registry returns the settings of everything that the binary runs, so that one
// file serves nodes and frontends alike.
func Registry() *dynamicconfig.Registry {
	r, err := dynamicconfig.NewRegistry(append(matching.Declared(), client.Declared()...)...)
	if err != nil {
		panic(err) //nolint:forbidigo // two packages claim one key: every test of the command says so
	}
	return r
}

// Flags are the flags of a command that reads dynamic settings.
type Flags struct {
	Path    string // empty: all settings have their defaults
	onError reaction
}

// Add adds the flags to a command, with their environment variables.
func (f *Flags) Add(cmd *cobra.Command) {
	f.onError = refuse
	flags := cmd.Flags()
	flags.StringVar(&f.Path, "dynamic-config", "", "YAML file of dynamic settings, followed as it changes")
	flags.Var(&f.onError, "dynamic-config-on-error",
		"what a start does when that file is missing or wrong: refuse to start, or go on with the defaults")
	_ = cmd.MarkFlagFilename("dynamic-config", "yaml", "yml")
	_ = cmd.RegisterFlagCompletionFunc("dynamic-config-on-error", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return []string{string(refuse), string(defaults)}, cobra.ShellCompDirectiveNoFileComp
	})
	env.Bind(flags, "dynamic-config", "dynamic-config-on-error")
}

// StartOnDefaults reports whether to start although the file is missing or wrong.
func (f *Flags) StartOnDefaults() bool { return f.onError == defaults }

// Hint returns what to do about an error of a start, when that is the file's; else
// nothing.
func (f *Flags) Hint(err error) string {
	const without = "--dynamic-config-on-error=defaults starts without it"
	if _, mistakes := errors.AsType[dynamicconfig.Problems](err); mistakes {
		return "correct the file, `taskring config validate " + f.Path + "` checks it; " + without
	}
	if errors.Is(err, file.ErrUnreadable) {
		return "put the file in place, or name another with --dynamic-config; " + without
	}
	return ""
}

// reaction is what a start does about a file with a mistake. It is a flag value.
type reaction string

const (
	refuse   reaction = "refuse"
	defaults reaction = "defaults"
)

// String returns the reaction as it is typed.
func (r *reaction) String() string { return string(*r) }

// Type names the flag's values in help texts.
func (r *reaction) Type() string { return "refuse|defaults" }

// Set reads a reaction.
func (r *reaction) Set(s string) error {
	switch reaction(s) {
	case refuse, defaults:
		*r = reaction(s)
		return nil
	}
	return fmt.Errorf("%q is not one of refuse, defaults", s)
}
