package file

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/taskring/taskring/dynamicconfig"
)

const (
	repeatAfter = time.Minute // of a failure in the log
	mostChanges = 100         // told one by one in the log
	mostErrors  = 20          // told in one line of the log, or in the text of a status
)

// Status is how a source is doing.
type Status struct {
	Path     string
	Hash     string    // of what is in force; empty for all defaults
	LoadedAt time.Time // zero when nothing was loaded
	// Failing is why the present file is not in force; nil when it is.
	Failing      error
	FailingSince time.Time
}

// String returns the status in one line, for people.
func (s Status) String() string {
	force := "all defaults are"
	if s.Hash != "" {
		force = "the file with hash " + s.Hash + " is"
	}
	if s.Failing == nil {
		return fmt.Sprintf("dynamic settings: %s in force", force)
	}
	return fmt.Sprintf("dynamic settings: %s is refused since %s, %s in force: %s",
		s.Path, s.FailingSince.UTC().Format(time.RFC3339), force, inOneLine(s.Failing, 1))
}

// Status returns how the source is doing now.
func (s *Source) Status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.status
}

// logged is what was said of a failure.
type logged struct {
	text string
	at   time.Time
}

// judge loads what was read, or says why not.
func (s *Source) judge(now time.Time, content []byte, err error) {
	var next *dynamicconfig.Snapshot
	if err == nil {
		next, err = s.cfg.Registry.Parse(content)
	}
	s.settleOn(now, next, err)
}

// settleOn puts a snapshot in force, or keeps why there is none.
func (s *Source) settleOn(now time.Time, next *dynamicconfig.Snapshot, err error) {
	if err != nil {
		s.fail(now, err)
		return
	}
	before := s.cfg.Settings.Snapshot()
	s.cfg.Settings.Publish(next)
	s.succeed(now, next.Hash())
	s.tell(before, next)
}

// unsettled notes that a file never holds still, or, by nil, that it is the one
// that was judged last.
func (s *Source) unsettled(now time.Time, err error) {
	failing := s.Status().Failing
	switch {
	case err != nil && failing == nil:
		s.fail(now, err)
	case err == nil && errors.Is(failing, errRestless):
		s.succeed(now, s.Status().Hash)
	}
}

func (s *Source) fail(now time.Time, err error) {
	s.mu.Lock()
	if s.mu.status.Failing == nil {
		s.mu.status.FailingSince = now
	}
	s.mu.status.Failing = err
	s.mu.Unlock()
	s.logFailure(now, err)
}

func (s *Source) succeed(now time.Time, hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.status.Hash != hash || s.mu.status.LoadedAt.IsZero() {
		s.mu.status.LoadedAt = now
	}
	s.mu.status.Hash = hash
	s.mu.status.Failing, s.mu.status.FailingSince = nil, time.Time{}
	s.logged = logged{}
}

// repeat says again that the source is failing.
func (s *Source) repeat(now time.Time) {
	if err := s.Status().Failing; err != nil {
		s.logFailure(now, err)
	}
}

// logFailure says why a file is refused: another reason at once, the same one
// once a minute.
func (s *Source) logFailure(now time.Time, err error) {
	text := inOneLine(err, mostErrors)
	if text == s.logged.text && now.Sub(s.logged.at) < repeatAfter {
		return
	}
	s.logged = logged{text, now}
	status := s.Status()
	inForce := "the last good ones stay in force"
	if status.LoadedAt.IsZero() {
		inForce = "all defaults are in force"
	}
	s.cfg.Logger.Error("dynamic settings are refused, "+inForce,
		"path", s.cfg.Path, "hash_in_force", status.Hash, "since", status.FailingSince, "error", text)
}

// tell logs what a new snapshot changed.
func (s *Source) tell(before, next *dynamicconfig.Snapshot) {
	differences := dynamicconfig.Diff(before, next)
	s.cfg.Logger.Info("dynamic settings loaded",
		"path", s.cfg.Path, "hash", next.Hash(), "hash_before", before.Hash(), "changes", len(differences))
	for i, d := range differences {
		if i == mostChanges {
			s.cfg.Logger.Info("further dynamic settings changed", "count", len(differences)-mostChanges)
			break
		}
		s.cfg.Logger.Info("dynamic setting changed", "key", d.Key, "constraints", d.Constraints.String(),
			"change", string(d.Change), "old", d.Old, "new", d.New)
	}
	for _, w := range next.Warnings() {
		s.cfg.Logger.Warn("dynamic settings hold an entry of the past", slog.String("path", s.cfg.Path),
			slog.Int("line", w.Line), slog.String("warning", w.Message()))
	}
}

// inOneLine returns the first lines of an error, separated by semicolons.
func inOneLine(err error, most int) string {
	lines := strings.Split(err.Error(), "\n")
	if rest := len(lines) - most; rest > 0 {
		lines = append(lines[:most:most], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(lines, "; ")
}

// instrument makes the gauges of the source. What it returns takes them back.
func (s *Source) instrument() (func() error, error) {
	m := s.cfg.Meter
	var errs [4]error
	var failed, info metric.Int64ObservableGauge
	var loaded metric.Float64ObservableGauge
	failed, errs[0] = m.Int64ObservableGauge("dynamic_config_load_failed",
		metric.WithDescription("1 while the present dynamic-config file is not in force, as it is missing or wrong; else 0."))
	info, errs[1] = m.Int64ObservableGauge("dynamic_config_info",
		metric.WithDescription("1, with the hash of the dynamic-config file in force: how its SHA-256 begins."))
	loaded, errs[2] = m.Float64ObservableGauge("dynamic_config_loaded_timestamp", metric.WithUnit("s"),
		metric.WithDescription("Unix time at which the dynamic-config file in force was loaded."))
	var registration metric.Registration
	registration, errs[3] = m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		status := s.Status()
		if status.Failing == nil {
			o.ObserveInt64(failed, 0)
		} else {
			o.ObserveInt64(failed, 1)
		}
		o.ObserveInt64(info, 1, metric.WithAttributes(attribute.String("hash", status.Hash)))
		if !status.LoadedAt.IsZero() {
			o.ObserveFloat64(loaded, float64(status.LoadedAt.UnixMilli())/1000)
		}
		return nil
	}, failed, info, loaded)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("dynamicconfig/file: %w", err)
	}
	return registration.Unregister, nil
}
