package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/output"
)

// build is what is known of how this binary was made.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: "unknown", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Version = info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Revision = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// line is the build for people to read.
func (b build) line() string {
	return fmt.Sprintf("taskring %s, %s, %s\n", b.Version, b.Go, b.Platform)
}

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this binary",
		Args:  cobra.NoArgs,
	}
	format := output.Flag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		b := thisBuild()
		if *format == output.JSON {
			return output.Line(cmd.OutOrStdout(), b)
		}
		if _, err := fmt.Fprint(cmd.OutOrStdout(), b.line()); err != nil {
			return fmt.Errorf("writing the version: %w", err)
		}
		return nil
	}
	return cmd
}
