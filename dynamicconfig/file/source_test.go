package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/live"
)

// TestEveryWayToWrite has the limit go from 10 to 20 in each way in which files
// are replaced. Nothing but notification makes the source look.
func TestEveryWayToWrite(t *testing.T) {
	const next = "test.limit: 20\n"
	for name, put := range map[string]func(t *testing.T, path string){
		"in place": func(t *testing.T, path string) {
			t.Helper()
			write(t, path, next)
		},
		"rename": func(t *testing.T, path string) {
			t.Helper()
			replace(t, path, next)
		},
		"delete and create": func(t *testing.T, path string) {
			t.Helper()
			must(t, os.Remove(path))
			write(t, path, next)
		},
		"truncate and write": func(t *testing.T, path string) {
			t.Helper()
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC, 0)
			must(t, err)
			for i := range next {
				_, err := f.WriteString(next[i : i+1])
				must(t, err)
			}
			must(t, f.Close())
		},
		"move away and create": func(t *testing.T, path string) {
			t.Helper()
			must(t, os.Rename(path, path+"~"))
			write(t, path, next)
		},
		"an older file": func(t *testing.T, path string) {
			t.Helper()
			write(t, path+".old", next)
			past := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
			must(t, os.Chtimes(path+".old", past, past))
			must(t, os.Rename(path+".old", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := started(t)
			b.await(t, 10)
			put(t, b.path)
			b.await(t, 20)
		})
	}
}

// TestConfigMap swaps the link of a directory as Kubernetes does, twice, and
// deletes what it pointed to.
func TestConfigMap(t *testing.T) {
	dir := t.TempDir()
	version := func(n int) string {
		name := fmt.Sprintf("..2026_12_%02d", n)
		must(t, os.Mkdir(filepath.Join(dir, name), 0o700))
		write(t, filepath.Join(dir, name, "settings.yaml"), fmt.Sprintf("test.limit: %d\n", n))
		must(t, os.Symlink(name, filepath.Join(dir, "..data_tmp")))
		must(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
		return filepath.Join(dir, name)
	}
	first := version(10)
	path := filepath.Join(dir, "settings.yaml")
	must(t, os.Symlink(filepath.Join("..data", "settings.yaml"), path))
	b := newBench(t, path, nil)
	b.source.Start()
	b.await(t, 10)
	second := version(11)
	must(t, os.RemoveAll(first))
	b.await(t, 11)
	version(12)
	must(t, os.RemoveAll(second))
	b.await(t, 12)
}

// TestLinkToElsewhere: the file is a link, and its target is written in place.
func TestLinkToElsewhere(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	write(t, target, "test.limit: 10\n")
	path := filepath.Join(t.TempDir(), "settings.yaml")
	must(t, os.Symlink(target, path))
	b := newBench(t, path, nil)
	b.source.Start()
	b.await(t, 10)
	other := filepath.Join(t.TempDir(), "other")
	write(t, other, "test.limit: 20\n")
	must(t, os.Symlink(other, path+".new"))
	must(t, os.Rename(path+".new", path))
	b.await(t, 20)
	write(t, other, "test.limit: 30\n")
	b.await(t, 30)
}

// TestRapidWrites: of a thousand files put in place one after the other the last
// one counts.
func TestRapidWrites(t *testing.T) {
	b := started(t)
	for i := 1; i <= 1000; i++ {
		replace(t, b.path, fmt.Sprintf("test.limit: %d\n", 100+i))
	}
	b.await(t, 1100)
	if s := b.source.Status(); s.Failing != nil {
		t.Errorf("after only good files: %v", s)
	}
}

// TestMistake puts a wrong file in place while the settings are read all the
// time: nothing changes but the metric, the status and the log, until it is mended.
func TestMistake(t *testing.T) {
	b := started(t)
	b.await(t, 10)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for {
				if v := limit.Get(b.settings.Snapshot()); v != 10 && v != 20 {
					t.Errorf("the limit was %d", v)
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	good := b.source.Status()
	replace(t, b.path, "test.limit: 20\ntest.swich: true\ntest.limit: many\n")
	why := b.awaitRefusal(t)
	for _, want := range []string{"line 2, column 1", `did you mean "test.switch"?`, "line 3, column 1", "a second time"} {
		if !strings.Contains(why, want) {
			t.Errorf("no word of %q in %q", want, why)
		}
	}
	status := b.source.Status()
	var problems dynamicconfig.Problems
	if !errors.As(status.Failing, &problems) || status.Hash != good.Hash || status.FailingSince.IsZero() || limit.Get(b.settings.Snapshot()) != 10 {
		t.Errorf("with a wrong file: %v", status)
	}
	if !strings.Contains(status.String(), "refused since") || !strings.Contains(status.String(), good.Hash) {
		t.Errorf("the status says %q", status)
	}
	failed, _ := b.gauge(t, "dynamic_config_load_failed")
	if _, hash := b.gauge(t, "dynamic_config_info"); failed != 1 || hash != good.Hash {
		t.Errorf("failed %v, hash %s; want 1 and %s", failed, hash, good.Hash)
	}

	replace(t, b.path, "test.limit: 20\ntest.switch: true\n")
	b.await(t, 20)
	close(done)
	wg.Wait()
	b.awaitGood(t)
	failed, _ = b.gauge(t, "dynamic_config_load_failed")
	_, hash := b.gauge(t, "dynamic_config_info")
	if status := b.source.Status(); failed != 0 || status.Failing != nil || hash == good.Hash || hash != b.settings.Snapshot().Hash() {
		t.Errorf("mended: failed %v, %v", failed, status)
	}
	if at, _ := b.gauge(t, "dynamic_config_loaded_timestamp"); time.Since(time.UnixMilli(int64(at*1000))) > time.Minute {
		t.Errorf("loaded at %v", at)
	}
}

// awaitGood waits for the status, which is written just after the values.
func (b *bench) awaitGood(t *testing.T) {
	t.Helper()
	deadline := time.After(patience)
	for b.source.Status().Hash != b.settings.Snapshot().Hash() {
		select {
		case <-deadline:
			t.Fatal("the status did not follow the values")
		case <-time.After(time.Millisecond):
		}
	}
}

// TestBackToTheGoodFile: after a wrong file the very same good one is good again.
func TestBackToTheGoodFile(t *testing.T) {
	b := started(t)
	write(t, b.path, "test.limit: -3\n")
	b.awaitRefusal(t)
	write(t, b.path, "test.limit: 10\n")
	deadline := time.After(patience)
	for b.source.Status().Failing != nil {
		select {
		case <-deadline:
			t.Fatal(b.source.Status())
		case <-time.After(time.Millisecond):
		}
	}
}

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	r, err := dynamicconfig.NewRegistry(limit, toggle)
	must(t, err)
	for name, tc := range map[string]struct {
		content string // "-" = no file
		want    string // in the error
	}{
		"missing":   {"-", "no such file"},
		"wrong":     {"test.limit: x\n", `line 1, column 13: test.limit: "x" is not an integer`},
		"too large": {"test.limit: 2" + strings.Repeat(" ", 1000), "more than 500 bytes, the limit MaxBytes"},
		"empty":     {"", ""},
	} {
		path := filepath.Join(dir, name)
		if tc.content != "-" {
			write(t, path, tc.content)
		}
		settings := live.New(nil)
		cfg := Config{Path: path, Registry: r, Settings: settings, MaxBytes: 500}
		s, err := Open(cfg)
		if (err == nil) != (tc.want == "") || (err != nil && !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: Open: %v, want %q", name, err, tc.want)
		}
		if err == nil {
			must(t, s.Stop())
			continue
		}
		cfg.StartOnDefaults = true
		s, err = Open(cfg)
		if err != nil {
			t.Errorf("%s: StartOnDefaults: %v", name, err)
			continue
		}
		if status := s.Status(); status.Failing == nil || !strings.Contains(status.String(), "all defaults are in force") {
			t.Errorf("%s: %v", name, status)
		}
		must(t, s.Stop())
	}
	if _, err := Open(Config{Path: dir, Registry: r, Settings: live.New(nil)}); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	for _, cfg := range []Config{{}, {Path: "x", Registry: r, Settings: live.New(nil), Poll: -1}} {
		if _, err := Open(cfg); err == nil || !strings.Contains(err.Error(), "Config") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// TestStartsWithoutFile: a source that began on defaults takes the file when it
// is there.
func TestStartsWithoutFile(t *testing.T) {
	b := newBench(t, filepath.Join(t.TempDir(), "settings.yaml"), func(c *Config) { c.StartOnDefaults = true })
	b.source.Start()
	write(t, b.path, "test.limit: 20\n")
	b.await(t, 20)
}

// TestRefusalSaysWhatIsInForce: a source that began on defaults has no last good
// values, and must not say so.
func TestRefusalSaysWhatIsInForce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	b := newBench(t, path, func(c *Config) { c.StartOnDefaults = true })
	if all := strings.Join(b.log.take(), "\n"); !strings.Contains(all, "refused, all defaults are in force") {
		t.Errorf("without a good file: %s", all)
	}
	b.awaitRefusal(t)
	b.source.Start()
	write(t, path, "test.limit: 20\n")
	b.await(t, 20)
	write(t, path, "test.limit: x\n")
	b.awaitRefusal(t)
	if all := strings.Join(b.log.take(), "\n"); !strings.Contains(all, "refused, the last good ones stay in force") {
		t.Errorf("after a good file: %s", all)
	}
}

// TestChangeBeforeStart: what was written between Open and Start is not missed.
func TestChangeBeforeStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	write(t, path, "test.limit: 10\n")
	b := newBench(t, path, nil)
	write(t, path, "test.limit: 20\n")
	b.source.Start()
	b.await(t, 20)
}

// TestStartStop: in any order, more than once and at the same time.
func TestStartStop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	write(t, path, "test.limit: 10\n")
	for range 20 {
		b := newBench(t, path, nil)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(b.source.Start)
			wg.Go(func() {
				if err := b.source.Stop(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		must(t, b.source.Stop())
		b.source.Start()
	}
}

// TestChangesAreLogged: one line each, with all that an operator asks for.
func TestChangesAreLogged(t *testing.T) {
	b := started(t)
	b.await(t, 10)
	first := b.settings.Snapshot().Hash()
	b.log.take()
	write(t, b.path, "test.bound: 20\n")
	b.await(t, 20)
	must(t, b.source.Stop())
	all := strings.Join(b.log.take(), "\n")
	for _, want := range []string{
		"INFO dynamic settings loaded path=" + b.path + " hash=" + b.settings.Snapshot().Hash() + " hash_before=" + first + " changes=1",
		"INFO dynamic setting changed key=test.limit constraints={} change=changed old=10 new=20",
		"WARN dynamic settings hold an entry of the past path=" + b.path + " line=1 warning=test.bound: the setting is now called test.limit",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no line %q in:\n%s", want, all)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "settings.yaml")
	write(t, path, "test.limit: 20\n")
	r, err := dynamicconfig.NewRegistry(limit)
	must(t, err)
	s, err := Load(path, r)
	if err != nil || limit.Get(s) != 20 {
		t.Errorf("%v, %v", limit.Get(s), err)
	}
	if _, err := Load(path+".not", r); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, ErrUnreadable) {
		t.Errorf("a missing file: %v", err)
	}
}
