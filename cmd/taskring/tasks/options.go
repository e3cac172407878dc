package tasks

import (
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/matching/matchingpb"
)

// taskFlags are the flags that say something of the tasks that are added.
// Ranges are the node's to check: it knows its limits and names them.
type taskFlags struct {
	priority    int32
	delay       time.Duration
	expiry      time.Duration
	lease       time.Duration
	maxAttempts int32
	headers     []string
	durability  string
}

func (f *taskFlags) add(flags *pflag.FlagSet) {
	flags.Int32Var(&f.priority, "priority", 3, "1 (first) to 5 (last)")
	flags.DurationVar(&f.delay, "delay", 0, "hand the task out after this time at the earliest, such as 90s or 48h; 365 days at most unless the node says otherwise")
	flags.DurationVar(&f.expiry, "expiry", 0, "drop the task when no worker took it within this time; 0 is never")
	flags.DurationVar(&f.lease, "lease", 0, "time a worker has without a sign of life; 0 is the node's setting, 30s by default")
	flags.Int32Var(&f.maxAttempts, "max-attempts", 0, "attempts until a task that fails becomes a dead letter; 0 is the node's setting, 25 by default")
	flags.StringArrayVar(&f.headers, "header", nil, "NAME=VALUE that travels with the task; may be repeated")
	flags.StringVar(&f.durability, "durability", "durable", "durable: on disk before it is acknowledged; hand-off: a waiting worker is enough")
}

func (f *taskFlags) options(flags *pflag.FlagSet) (*matchingpb.TaskOptions, error) {
	durability, err := ParseDurability(f.durability)
	if err != nil {
		return nil, err
	}
	o := &matchingpb.TaskOptions{
		Priority: f.priority, MaxAttempts: f.maxAttempts, Durability: durability,
	}
	if flags.Changed("priority") && f.priority == 0 {
		return nil, exit.Usagef("--priority 0 is not one of 1 (first) to 5 (last)")
	}
	for _, h := range f.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return nil, exit.Usagef("--header %q is not NAME=VALUE", h)
		}
		if o.Headers == nil {
			o.Headers = map[string]string{}
		}
		o.Headers[name] = value
	}
	if f.delay < 0 || f.expiry < 0 || f.lease < 0 {
		return nil, exit.Usagef("--delay, --expiry and --lease count from now on and may not be negative")
	}
	if f.delay > 0 {
		o.Start = &matchingpb.TaskOptions_Delay{Delay: durationpb.New(f.delay)}
	}
	if f.expiry > 0 {
		o.Expiry = durationpb.New(f.expiry)
	}
	if f.lease > 0 {
		o.LeaseDuration = durationpb.New(f.lease)
	}
	return o, nil
}

// ParseDurability reads the value of a --durability flag.
func ParseDurability(s string) (matchingpb.Durability, error) {
	switch s {
	case durable:
		return matchingpb.Durability_DURABILITY_DURABLE, nil
	case handOff:
		return matchingpb.Durability_DURABILITY_HAND_OFF, nil
	}
	return 0, exit.Usagef("--durability %q is not one of %s", s, strings.Join(Durabilities(), ", "))
}

// The values of --durability.
const (
	durable = "durable"
	handOff = "hand-off"
)

// Durabilities returns the values of a --durability flag.
func Durabilities() []string { return []string{durable, handOff} }

// durabilityName returns a durability as flags and tables have it.
func durabilityName(d matchingpb.Durability) string {
	if d == matchingpb.Durability_DURABILITY_HAND_OFF {
		return handOff
	}
	return durable
}
