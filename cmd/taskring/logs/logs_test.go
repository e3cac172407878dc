package logs

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// logger returns the logger that the flags ask for, and what it writes.
func logger(t *testing.T, args ...string) (log func(d time.Duration), written *bytes.Buffer) {
	t.Helper()
	var f Flags
	cmd := &cobra.Command{}
	f.Add(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	l, err := f.Logger(&b)
	if err != nil {
		t.Fatal(err)
	}
	return func(d time.Duration) { l.Info("ended", "took", d, "tasks", 3) }, &b
}

func TestDurationsInJSONHaveAUnit(t *testing.T) {
	log, written := logger(t, "--log-format", "json")
	log(1500 * time.Millisecond)
	var line struct {
		Took  string `json:"took"`
		Tasks int    `json:"tasks"`
	}
	if err := json.Unmarshal(written.Bytes(), &line); err != nil || line.Took != "1.5s" || line.Tasks != 3 {
		t.Errorf("%v: %s", err, written)
	}
}

func TestLevels(t *testing.T) {
	for level, lines := range map[string]int{"debug": 1, "INFO": 1, "warn": 0, "error": 0} {
		log, written := logger(t, "--log-level", level)
		log(time.Second)
		if got := strings.Count(written.String(), "\n"); got != lines {
			t.Errorf("--log-level %s writes %d lines of level info, want %d", level, got, lines)
		}
	}
	log, written := logger(t)
	log(time.Second)
	if !strings.Contains(written.String(), "took=1s") {
		t.Errorf("without flags it writes %q", written)
	}
	cmd := &cobra.Command{}
	new(Flags).Add(cmd)
	if err := cmd.ParseFlags([]string{"--log-level", "loud"}); err == nil || !strings.Contains(err.Error(), "debug, info, warn, error") {
		t.Errorf("a level that is none gives %v", err)
	}
}
