package file

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
)

// Config is what a source is made of. Path, Registry and Settings are required.
type Config struct {
	Path     string                  // of the YAML file
	Registry *dynamicconfig.Registry // the settings that the file may hold
	Settings *live.Settings          // where what is read is published

	// StartOnDefaults lets a source begin although its file is missing or wrong:
	// with all defaults, and failing. By default that is an error.
	StartOnDefaults bool

	Settle   time.Duration // a file has to hold still for so long; default 500 ms
	Poll     time.Duration // a file is looked at so often, besides when told of changes; default 10 s
	MaxBytes int64         // of the file; default 16 MiB

	Logger *slog.Logger // default none
	Meter  metric.Meter // default none
}

func (c *Config) complete() error {
	if c.Path == "" || c.Registry == nil || c.Settings == nil {
		return errors.New("dynamicconfig/file: Config lacks Path, Registry or Settings")
	}
	if c.Settle < 0 || c.Poll < 0 || c.MaxBytes < 0 {
		return errors.New("dynamicconfig/file: Config has a negative number or duration; 0 stands for the default")
	}
	setDefault(&c.Settle, 500*time.Millisecond)
	setDefault(&c.Poll, 10*time.Second)
	setDefault(&c.MaxBytes, 16<<20)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Meter == nil {
		c.Meter = noop.NewMeterProvider().Meter("")
	}
	return nil
}

func setDefault[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// ErrUnreadable is why a file is refused whose content was not even looked at: it
// is missing, not to be read, no regular file or too large.
var ErrUnreadable = errors.New("the settings file cannot be read")

// Load reads a file once, follows nothing and publishes nothing. The error is
// [dynamicconfig.Problems] when the file can be read and is wrong, and else
// [ErrUnreadable].
func Load(path string, registry *dynamicconfig.Registry) (*dynamicconfig.Snapshot, error) {
	content, err := read(path, 16<<20)
	if err != nil {
		return nil, err
	}
	return registry.Parse(content)
}

// read returns the content of a file of a bounded size. It refuses what is no
// regular file: reading a pipe could last for ever.
func read(path string, most int64) ([]byte, error) {
	about, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	if !about.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrUnreadable, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	case int64(len(content)) > most:
		return nil, fmt.Errorf("%w: %s has more than %d bytes, the limit MaxBytes", ErrUnreadable, path, most)
	}
	return content, nil
}

// sightOf tells what reading the file showed.
func sightOf(content []byte, err error) sight {
	if err != nil {
		return sight{err: err.Error(), unfinished: true}
	}
	return sight{content: sha256.Sum256(content), unfinished: !bytes.HasSuffix(content, []byte("\n"))}
}
