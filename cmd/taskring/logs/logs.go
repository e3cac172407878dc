// Package logs is how the commands that run for long are told to log: the flags
// --log-format and --log-level.
package logs

import (
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/taskring/taskring/cmd/taskring/env"
	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/usage"
)

// Flags are the flags of a command that logs.
type Flags struct {
	format string
	level  level
}

// Add adds the flags to a command, with their environment variables.
func (f *Flags) Add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log-format", "text", "json or text")
	cmd.Flags().Var(&f.level, "log-level", "debug, info, warn or error")
	usage.Words(cmd, "log-format", "json", "text")
	usage.Words(cmd, "log-level", "debug", "info", "warn", "error")
	env.Bind(cmd.Flags(), "log-format", "log-level")
}

// Logger returns a logger that writes to w as the flags say.
func (f *Flags) Logger(w io.Writer) (*slog.Logger, error) {
	options := &slog.HandlerOptions{Level: slog.Level(f.level)}
	switch f.format {
	case "json":
		options.ReplaceAttr = readable
		return slog.New(slog.NewJSONHandler(w, options)), nil
	case "text":
		return slog.New(slog.NewTextHandler(w, options)), nil
	}
	return nil, exit.Usagef("--log-format %q is not one of json, text", f.format)
}

// readable writes a duration as "10s" in JSON too, where it would be a bare
// number of nanoseconds.
func readable(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}

// level is the value of --log-level; its zero value is info.
type level slog.Level

// String returns the level as it is typed.
func (l *level) String() string { return strings.ToLower(slog.Level(*l).String()) }

// Type names the flag's values in help texts.
func (l *level) Type() string { return "level" }

// Set reads a level.
func (l *level) Set(s string) error {
	for _, known := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(s, known.String()) {
			*l = level(known)
			return nil
		}
	}
	return fmt.Errorf("%q is not one of debug, info, warn, error", s)
}
