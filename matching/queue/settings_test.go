package queue

import (
	"reflect"
	"testing"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/ledger"
	"github.com/taskring/taskring/matching/match"
	"github.com/taskring/taskring/partition"
)

// TestDefaults: without a file the settings are the ledger's own defaults, and no
// field is forgotten.
func TestDefaults(t *testing.T) {
	s := SettingsIn(nil, partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity})
	if s.Limits != ledger.DefaultLimits() {
		t.Errorf("the settings' limits are\n%+v, those of the ledger\n%+v", s.Limits, ledger.DefaultLimits())
	}
	if s.PollOrder != match.NewestFirst || s.PollerTTL == 0 || s.MaxPollers == 0 {
		t.Errorf("the other settings are %+v", s)
	}
}

// TestEverySettingIsRead: each setting that is declared changes what a queue is
// given.
func TestEverySettingIsRead(t *testing.T) {
	r, err := dynamicconfig.NewRegistry(Declared()...)
	if err != nil {
		t.Fatal(err)
	}
	q := partition.Queue{Namespace: "ns", Name: "q", Type: partition.Activity}
	values := map[string]string{"enum": "oldestFirst", "duration": "7m", "size": "1234KiB", "int": "123", "struct": "{initial: 2s}"}
	for _, def := range r.Settings() {
		about := def.About()
		in, err := r.Parse([]byte(about.Key + ": " + values[about.Type]))
		if err != nil {
			t.Error(err)
			continue
		}
		if reflect.DeepEqual(SettingsIn(in, q), SettingsIn(nil, q)) {
			t.Errorf("%s changes nothing", about.Key)
		}
	}
}
