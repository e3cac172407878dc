package env

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
)

// parse runs a command with two bound flags and returns their values.
func parse(t *testing.T, args ...string) (dir string, wait time.Duration, err error) {
	t.Helper()
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return Apply(cmd) }, SilenceErrors: true, SilenceUsage: true}
	cmd.Flags().StringVar(&dir, "data-dir", "default", "where")
	cmd.Flags().DurationVar(&wait, "wait", time.Second, "how long")
	Bind(cmd.Flags(), "data-dir", "wait")
	if usage := cmd.Flags().Lookup("data-dir").Usage; !strings.Contains(usage, "$TASKRING_DATA_DIR") {
		t.Errorf("the usage %q does not name the variable", usage)
	}
	cmd.SetArgs(args)
	err = cmd.Execute()
	return dir, wait, err
}

func TestFlagsWinOverTheEnvironment(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		args     []string
		want     string
	}{
		"neither":        {"", nil, "default"},
		"variable":       {"from-env", nil, "from-env"},
		"flag":           {"", []string{"--data-dir", "from-flag"}, "from-flag"},
		"both":           {"from-env", []string{"--data-dir", "from-flag"}, "from-flag"},
		"flag = default": {"from-env", []string{"--data-dir", "default"}, "default"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TASKRING_DATA_DIR", c.variable)
			if got, _, err := parse(t, c.args...); err != nil || got != c.want {
				t.Errorf("--data-dir is %q, %v, want %q", got, err, c.want)
			}
		})
	}
}

func TestBadVariableIsNamed(t *testing.T) {
	t.Setenv("TASKRING_WAIT", "soon")
	_, _, err := parse(t)
	if exit.Of(err) != exit.Usage || !strings.Contains(err.Error(), "TASKRING_WAIT") {
		t.Errorf("got %v, want a usage error that names TASKRING_WAIT", err)
	}
	if _, wait, err := parse(t, "--wait", "3s"); err != nil || wait != 3*time.Second {
		t.Errorf("with the flag given: %v, %v, want 3s", wait, err)
	}
}
