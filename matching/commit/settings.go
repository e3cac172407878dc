package commit

import (
	"cmp"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
)

var (
	commitDeadline = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "matching.commitDeadline", Default: 10 * time.Second, Min: 10 * time.Millisecond, Max: 10 * time.Minute,
		Doc: "How long a call to the store may take. While a commit of the embedded store takes longer, adds are refused and the node is not ready.",
	})
	retryInitial = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "matching.commitRetryInitial", Default: 10 * time.Millisecond, Min: time.Millisecond, Max: time.Minute,
		Doc: "How long a commit lane waits after the store refused a commit; twice as long after each further refusal.",
	})
	retryMax = dynamicconfig.Global(dynamicconfig.Duration{
		Key: "matching.commitRetryMax", Default: time.Second, Min: time.Millisecond, Max: 10 * time.Minute,
		Doc: "The longest that a commit lane waits between two tries.",
	})
)

// Declared lists the settings of this package.
func Declared() []dynamicconfig.Declared {
	return []dynamicconfig.Declared{commitDeadline, retryInitial, retryMax}
}

// Settings are what may change while the lanes run; they are read at each use.
// Zero values are the defaults.
type Settings struct {
	Deadline     time.Duration // for each call to the store
	RetryInitial time.Duration // first wait after a refusal, doubling
	RetryMax     time.Duration // longest wait after a refusal
}

// SettingsIn returns the settings that hold.
func SettingsIn(in *dynamicconfig.Snapshot) Settings {
	return Settings{Deadline: commitDeadline.Get(in), RetryInitial: retryInitial.Get(in), RetryMax: retryMax.Get(in)}
}

// WithDefaults returns s with its zero fields filled.
func (s Settings) WithDefaults() Settings {
	d := SettingsIn(nil)
	return Settings{
		Deadline:     cmp.Or(s.Deadline, d.Deadline),
		RetryInitial: cmp.Or(s.RetryInitial, d.RetryInitial),
		RetryMax:     cmp.Or(s.RetryMax, d.RetryMax),
	}
}
