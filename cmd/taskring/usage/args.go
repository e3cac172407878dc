package usage

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
)

// Args has wrong arguments of cmd and of all commands below it explained by
// this package, and a command that only groups others refuse a word that it does
// not know. What arguments a command takes it says with cobra.NoArgs or
// cobra.ExactArgs; their names stand in its Use.
func Args(cmd *cobra.Command) {
	check := cmd.Args
	if check == nil && cmd.HasSubCommands() {
		check = cobra.NoArgs
	}
	if check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if check(cmd, args) == nil {
				return nil
			}
			return exit.Usagef("%s\n%s", argsMessage(cmd, args), seeHelp(cmd))
		}
	}
	if cmd.HasSubCommands() && cmd.RunE == nil {
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, below := range cmd.Commands() {
		Args(below)
	}
}

func argsMessage(cmd *cobra.Command, args []string) string {
	wanted := argNames(cmd.Use)
	switch {
	case cmd.HasSubCommands():
		return unknownCommand(cmd, args[0])
	case len(args) < len(wanted):
		return wanted[len(args)] + " is missing, as in: " + pathAbove(cmd) + cmd.Use
	case len(wanted) == 0:
		return "\"" + args[0] + "\" is too much: " + cmd.CommandPath() + " takes flags only"
	default:
		return "\"" + args[len(wanted)] + "\" is too much: " + cmd.CommandPath() + " takes " + strings.Join(wanted, " and ") + " and flags"
	}
}

func unknownCommand(cmd *cobra.Command, typed string) string {
	message := "unknown command \"" + typed + "\"; "
	cmd.SuggestionsMinimumDistance = 2
	if near := cmd.SuggestionsFor(typed); len(near) > 0 {
		return message + "did you mean " + strings.Join(near, " or ") + "?"
	}
	var known []string
	for _, below := range cmd.Commands() {
		if below.IsAvailableCommand() {
			known = append(known, below.Name())
		}
	}
	return message + cmd.CommandPath() + " has " + strings.Join(known, ", ")
}

// argNames returns the names of the arguments in the Use of a command: what
// stands between its name and the first flag or optional part.
func argNames(use string) []string {
	var names []string
	for _, word := range strings.Fields(use)[1:] {
		if strings.ContainsAny(word[:1], "-[(") {
			break
		}
		names = append(names, word)
	}
	return names
}

// pathAbove returns the path of the command's parent, with a space behind it.
func pathAbove(cmd *cobra.Command) string {
	return strings.TrimSuffix(cmd.CommandPath(), cmd.Name())
}
