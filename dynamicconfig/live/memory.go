package live

import (
	"fmt"
	"sync"

	"github.com/taskring/taskring/dynamicconfig"
)

// Memory is a source whose values are set by calls.
type Memory struct {
	settings *Settings

	mu struct {
		sync.Mutex
		overrides []dynamicconfig.Override
	}
}

// NewMemory returns a source that feeds settings; nothing is published yet.
func NewMemory(settings *Settings) *Memory { return &Memory{settings: settings} }

// Set gives settings values and publishes the outcome. A value under the same
// constraints is replaced. It refuses what a file would be refused for, and then
// nothing changes.
func (m *Memory) Set(overrides ...dynamicconfig.Override) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.publishLocked(append(m.withoutLocked(overrides), overrides...))
}

// Unset takes back what Set gave under the same constraints, whatever the value,
// and publishes the outcome.
func (m *Memory) Unset(overrides ...dynamicconfig.Override) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.publishLocked(m.withoutLocked(overrides))
}

// withoutLocked returns the values that are at none of these places.
func (m *Memory) withoutLocked(places []dynamicconfig.Override) []dynamicconfig.Override {
	var rest []dynamicconfig.Override
	for _, have := range m.mu.overrides {
		kept := true
		for _, p := range places {
			kept = kept && !have.SamePlace(p)
		}
		if kept {
			rest = append(rest, have)
		}
	}
	return rest
}

func (m *Memory) publishLocked(overrides []dynamicconfig.Override) error {
	snapshot, err := dynamicconfig.NewSnapshot(overrides...)
	if err != nil {
		return fmt.Errorf("settings: %w", err)
	}
	m.mu.overrides = overrides
	m.settings.Publish(snapshot)
	return nil
}
