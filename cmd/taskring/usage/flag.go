package usage

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskring/taskring/cmd/taskring/exit"
)

// Flag explains why the flags of a command could not be read.
func Flag(cmd *cobra.Command, err error) error {
	return exit.Usagef("%s\n%s", flagMessage(err), seeHelp(cmd))
}

// Variable explains why the value of an environment variable does not fit the
// flag that it stands for.
func Variable(name string, err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return exit.Usagef("%s", valueMessage("environment variable "+name, bad))
	}
	return exit.Usagef("environment variable %s: %w", name, err)
}

func seeHelp(cmd *cobra.Command) string { return "see `" + cmd.CommandPath() + " --help`" }

func flagMessage(err error) string {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return unknownFlag(missing)
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return flagName(bare.GetFlag()) + " needs a value"
	}
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return valueMessage(flagName(bad.GetFlag()), bad)
	}
	if bad, ok := errors.AsType[*pflag.InvalidSyntaxError](err); ok {
		return bad.GetSpecifiedFlag() + " is no flag; one is written --name value or --name=value"
	}
	return err.Error()
}

func unknownFlag(err *pflag.NotExistError) string {
	typed := err.GetSpecifiedShortnames()
	if typed == "" {
		return "there is no flag --" + err.GetSpecifiedName()
	}
	message := "there is no flag -" + err.GetSpecifiedName()
	if _, err := strconv.ParseFloat("-"+typed, 64); err == nil {
		message = "-" + typed + " is read as a flag, and there is none; an argument that begins with - stands behind --"
	}
	return message
}

func flagName(flag *pflag.Flag) string { return "--" + flag.Name }

// valueMessage says what a value of the subject has to look like.
func valueMessage(subject string, bad *pflag.InvalidValueError) string {
	is := subject + " " + strconv.Quote(bad.GetValue()) + " is "
	switch kind := bad.GetFlag().Value.Type(); kind {
	case "int", "int32", "int64", "uint", "uint32", "uint64":
		if errors.Is(bad, strconv.ErrRange) {
			return is + "too large"
		}
		return is + "not a whole number"
	case "float64":
		return is + "not a number"
	case "bool":
		return is + "neither true nor false"
	case "duration":
		return is + "not a duration such as 500ms, 30s, 10m or 48h" + inHours(bad.GetValue())
	}
	return subject + ": " + errors.Unwrap(bad).Error()
}

// inHours translates days, which durations do not have.
func inHours(typed string) string {
	count, days := strings.CutSuffix(typed, "d")
	n, err := strconv.ParseInt(count, 10, 32)
	if !days || err != nil {
		return ""
	}
	return "; " + typed + " is " + strings.TrimSuffix((time.Duration(n)*24*time.Hour).String(), "0m0s")
}
