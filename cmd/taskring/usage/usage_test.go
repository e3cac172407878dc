package usage

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
)

// tree is a command like those of taskring.
func tree() *cobra.Command {
	root := &cobra.Command{Use: "ring", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(Flag)
	group := &cobra.Command{Use: "task"}
	nothing := func(*cobra.Command, []string) error { return nil }
	get := &cobra.Command{Use: "get ID --queue NAME [--partition N]", Args: cobra.ExactArgs(1), RunE: nothing}
	get.Flags().Int("limit", 1, "")
	get.Flags().Float64("rate", 1, "")
	get.Flags().Bool("follow", false, "")
	get.Flags().Duration("delay", time.Second, "")
	list := &cobra.Command{Use: "list", Args: cobra.NoArgs, RunE: nothing}
	group.AddCommand(get, list)
	root.AddCommand(group)
	Args(root)
	return root
}

func TestMessages(t *testing.T) {
	for line, want := range map[string]string{
		"tsk":                    `unknown command "tsk"; did you mean task?`,
		"task bogus":             `unknown command "bogus"; ring task has get, list`,
		"task get":               "ID is missing, as in: ring task get ID --queue NAME [--partition N]",
		"task get 1 2":           `"2" is too much: ring task get takes ID and flags`,
		"task list 1":            `"1" is too much: ring task list takes flags only`,
		"task get -1":            "-1 is read as a flag, and there is none; an argument that begins with - stands behind --",
		"task get -x":            "there is no flag -x",
		"task get 1 --bogus":     "there is no flag --bogus",
		"task get 1 --limit":     "--limit needs a value",
		"task get 1 --limit x":   `--limit "x" is not a whole number`,
		"task get 1 --rate x":    `--rate "x" is not a number`,
		"task get 1 --follow=x":  `--follow "x" is neither true nor false`,
		"task get 1 --delay x":   `--delay "x" is not a duration such as 500ms, 30s, 10m or 48h`,
		"task get 1 --delay 10d": "; 10d is 240h",
		"task get 1 --=x":        "--=x is no flag",
		"task get 1 --limit 99999999999999999999": "is too large",
	} {
		cmd := tree()
		cmd.SetArgs(strings.Fields(line))
		err := cmd.Execute()
		if exit.Of(err) != exit.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%s gives %v, want %q", line, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s speaks Go: %v", line, err)
		}
	}
	for _, line := range []string{"task get 1 --delay 48h", "task get -- -1", "task list", "task"} {
		cmd := tree()
		cmd.SetOut(&strings.Builder{})
		cmd.SetArgs(strings.Fields(line))
		if err := cmd.Execute(); err != nil {
			t.Errorf("%s gives %v", line, err)
		}
	}
}

func TestVariable(t *testing.T) {
	cmd := tree().Commands()[0].Commands()[0]
	err := Variable("TASKRING_DELAY", cmd.Flags().Set("delay", "soon"))
	if want := `environment variable TASKRING_DELAY "soon" is not a duration`; exit.Of(err) != exit.Usage || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}
