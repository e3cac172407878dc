package config

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
)

// Command returns `taskring config` with its subcommands. registry holds the
// settings of everything that the binary runs.
func Command(registry *dynamicconfig.Registry) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, compare and explain dynamic settings, of files and of running nodes",
		Long: `A running node is tuned by a dynamic-config file: YAML, an entry for each
setting, with constraints for namespaces and task queues. These commands look at
such files and at what nodes made of them; nothing is changed.`,
	}
	cmd.AddCommand(
		validateCommand(registry), explainCommand(registry), diffCommand(registry), showCommand(registry), previewCommand(registry), docsCommand(registry),
	)
	return cmd
}

// fileFlag adds --file to a command.
func fileFlag(cmd *cobra.Command, usage string) *string {
	path := cmd.Flags().String("file", "", usage)
	_ = cmd.MarkFlagFilename("file", "yaml", "yml")
	return path
}

// load reads a file for a command that needs a right one.
func load(path string, registry *dynamicconfig.Registry) (*dynamicconfig.Snapshot, error) {
	snapshot, err := file.Load(path, registry)
	if problems, ok := errors.AsType[dynamicconfig.Problems](err); ok {
		return nil, &exit.Error{
			Code: exit.Failure,
			Err:  fmt.Errorf("%s is refused as a whole, it has %s", path, mistakes(len(problems))),
			Hint: "see them with `taskring config validate " + path + "`",
		}
	}
	return snapshot, err
}

func mistakes(n int) string { return count(n, "mistake", "mistakes") }

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func docsCommand(registry *dynamicconfig.Registry) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:     "docs",
		Short:   "Write the page of all settings, in Markdown",
		Example: "  taskring config docs --out docs/settings.md",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			page := registry.Page("taskring config docs")
			if out == "" {
				_, err := fmt.Fprint(cmd.OutOrStdout(), page)
				return wrapWriting(err)
			}
			//nolint:gosec // a page of documentation is for everyone to read
			return wrapWriting(os.WriteFile(out, []byte(page), 0o644))
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write; standard output when not given")
	return cmd
}

func wrapWriting(err error) error {
	if err != nil {
		return fmt.Errorf("writing: %w", err)
	}
	return nil
}

// isJSON reports whether a command is asked for JSON.
func isJSON(format *output.Format) bool { return *format == output.JSON }
