// Package env lets environment variables stand in for flags that were not
// given: flags win over the environment, the environment over defaults.
//
// A command declares the pairing with [Bind]; [Apply] carries it out once,
// before the command runs. An empty variable counts as not set.
package env

import (
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/taskring/taskring/cmd/taskring/usage"
)

// Prefix begins the name of every variable.
const Prefix = "TASKRING_"

// annotation is where a flag keeps the name of its variable.
const annotation = "taskring_env"

// Bind pairs each named flag with a variable: --data-dir with
// TASKRING_DATA_DIR. The help text of the flag names the variable.
func Bind(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		variable := Prefix + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
		flag := flags.Lookup(name)
		flag.Usage += " [$" + variable + "]"
		if flag.Annotations == nil {
			flag.Annotations = map[string][]string{}
		}
		flag.Annotations[annotation] = []string{variable}
	}
}

// Apply gives the flags of cmd that were not typed the values of their
// variables. It reports the first value that its flag refuses.
func Apply(cmd *cobra.Command) error {
	var wrong error
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		names := flag.Annotations[annotation]
		if len(names) == 0 || flag.Changed || wrong != nil {
			return
		}
		value := os.Getenv(names[0])
		if value == "" {
			return
		}
		if err := cmd.Flags().Set(flag.Name, value); err != nil {
			wrong = usage.Variable(names[0], err)
		}
	})
	return wrong
}
