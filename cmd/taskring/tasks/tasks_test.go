package tasks

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"pgregory.net/rapid"

	"github.com/taskring/taskring/cmd/taskring/exit"
	"github.com/taskring/taskring/cmd/taskring/output"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
)

// node takes batches as a node does, by a rule of the test.
type node struct {
	mu      sync.Mutex
	added   []string
	batches []int
	// refuse returns the error of one line; nil adds it.
	refuse func(line string) error
	// takes is how long a call lasts.
	takes time.Duration
	// broken is the error of a whole call.
	broken func(call int) error
}

func (n *node) AddTasks(_ context.Context, in *matchingpb.AddTasksRequest, _ ...grpc.CallOption) (*matchingpb.AddTasksResponse, error) {
	<-time.NewTimer(n.takes).C // virtual time in the tests that set it
	n.mu.Lock()
	defer n.mu.Unlock()
	payloads := in.GetBatches()[0].GetPayloads()
	n.batches = append(n.batches, len(payloads))
	if n.broken != nil {
		if err := n.broken(len(n.batches)); err != nil {
			return nil, err
		}
	}
	result := &matchingpb.AddResult{Ids: make([]uint64, len(payloads))}
	for i, payload := range payloads {
		if n.refuse != nil {
			if err := n.refuse(string(payload)); err != nil {
				result.Errors = append(result.Errors, wire.ItemErrorOf(i, err))
				continue
			}
		}
		n.added = append(n.added, string(payload))
		result.Ids[i] = uint64(len(n.added))
	}
	return &matchingpb.AddTasksResponse{Results: []*matchingpb.AddResult{result}}, nil
}

func numbered(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		b.WriteString(strconv.Itoa(i) + "\n")
	}
	return b.String()
}

func TestEveryLineIsAddedInOrder(t *testing.T) {
	n := &node{}
	s := &sender{client: n, lines: newIntake()}
	if err := s.run(t.Context(), strings.NewReader(numbered(25_000)), 1); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(n.added, "\n") + "\n"; got != numbered(25_000) {
		t.Errorf("the lines that were added are not those of the input, in order: %d lines", len(n.added))
	}
	if want := (account{Added: 25_000, Resume: 25_001}); s.tally.sofar() != want {
		t.Errorf("the account is %+v, want %+v", s.tally.sofar(), want)
	}
	for _, size := range n.batches {
		if size > maxBatchLines {
			t.Errorf("a batch of %d lines", size)
		}
	}
}

// TestSlowSource shows that a line does not wait for the next one, and that
// what comes while a batch is under way leaves with the next.
func TestSlowSource(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{takes: time.Second}
		s := &sender{client: n, lines: newIntake()}
		in, out := io.Pipe()
		done := make(chan error, 1)
		go func() { done <- s.run(t.Context(), in, 1) }()
		for _, part := range []string{"1\n", "2\n", "3\n"} {
			if _, err := out.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		time.Sleep(1500 * time.Millisecond)
		if got := n.count(); got != 1 {
			t.Errorf("%d lines are added after the first batch, want 1", got)
		}
		time.Sleep(time.Second)
		if got := n.count(); got != 3 {
			t.Errorf("%d lines are added after the second batch, want 3", got)
		}
		_ = out.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if len(n.batches) != 2 {
			t.Errorf("batches of %v, want 2 of them", n.batches)
		}
	})
}

func (n *node) count() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.added)
}

func TestFirstBadLineStopsTheRun(t *testing.T) {
	n := &node{refuse: func(line string) error {
		if line == "4321" || line == "4400" {
			return task.Errorf(task.Invalid, "bad payload")
		}
		return nil
	}}
	s := &sender{client: n, lines: newIntake()}
	err := s.run(t.Context(), strings.NewReader(numbered(100_000)), 1)
	if !errors.Is(err, task.Invalid) {
		t.Errorf("got %v, want the error of line 4321", err)
	}
	a := s.tally.sofar()
	if a.Resume != 4321 || a.Added != a.Resume-1+a.Behind || a.Unknown != 0 {
		t.Errorf("the account is %+v", a)
	}
	if len(n.added) != int(a.Added) || a.Added > 4321+2*maxBatchLines {
		t.Errorf("%d lines were added, the account says %d", len(n.added), a.Added)
	}
	told := plain().report(io.Discard, a, err)
	if told == nil || exit.Of(told) == exit.OK {
		t.Errorf("the failure is not reported: %v", told)
	}
}

// TestPassingErrorsAreSentAgain has each line refused twice because the
// partition loads.
func TestPassingErrorsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := map[string]int{}
		n := &node{refuse: func(line string) error {
			if refused[line]++; refused[line] <= 2 {
				return task.Errorf(task.NotReady, "loading")
			}
			return nil
		}}
		s := &sender{client: n, lines: newIntake()}
		if err := s.run(t.Context(), strings.NewReader(numbered(10)), 1); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(n.added, "\n") + "\n"; got != numbered(10) {
			t.Errorf("added %q", n.added)
		}
	})
}

func TestGivesUpOnALongRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		s := &sender{client: &node{refuse: func(string) error { return task.Errorf(task.StoreUnavailable, "disk full") }}, lines: newIntake()}
		if err := s.run(t.Context(), strings.NewReader("a\nb\n"), 1); !errors.Is(err, task.StoreUnavailable) {
			t.Errorf("got %v, want the store's refusal", err)
		}
		if took := time.Since(begun); took > resendFor {
			t.Errorf("gave up after %v, want at most %v", took, resendFor)
		}
		if want := (account{Resume: 1}); s.tally.sofar() != want {
			t.Errorf("the account is %+v, want %+v", s.tally.sofar(), want)
		}
	})
}

// TestLostAnswerIsNotRepeated breaks the connection: whether the lines were
// added is not known, so they are not sent again.
func TestLostAnswerIsNotRepeated(t *testing.T) {
	n := &node{broken: func(int) error { return status.Error(codes.Unavailable, "connection reset") }}
	s := &sender{client: n, lines: newIntake()}
	err := s.run(t.Context(), strings.NewReader("a\nb\n"), 1)
	if !wire.Guessed(err) || len(n.batches) == 0 || n.batches[0]+lastOf(n.batches) > 3 {
		t.Errorf("got %v after batches of %v", err, n.batches)
	}
	a := s.tally.sofar()
	if a.Added != 0 || a.Resume != 1 || a.Unknown == 0 {
		t.Errorf("the account is %+v", a)
	}
	told := plain().report(io.Discard, a, err)
	if exit.Of(told) != exit.Unavailable || !strings.Contains(told.Error(), "they may come twice") {
		t.Errorf("it is reported as %v", told)
	}
}

func lastOf(list []int) int {
	if len(list) < 2 {
		return 0
	}
	return list[len(list)-1]
}

func TestInterruptedRunSaysWhereToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := io.Pipe()
	n := &node{broken: func(int) error { cancel(); return nil }}
	s := &sender{client: n, lines: newIntake()}
	go func() { _, _ = out.Write([]byte("a\n")) }()
	err := s.run(ctx, in, 1)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	if want := (account{Added: 1, Resume: 2}); s.tally.sofar() != want {
		t.Errorf("the account is %+v, want %+v", s.tally.sofar(), want)
	}
	told := plain().report(io.Discard, s.tally.sofar(), err)
	if exit.Of(told) != exit.Interrupted || !strings.Contains(told.Error(), "go on from line 2") {
		t.Errorf("it is reported as %v", told)
	}
	_ = out.Close()
}

// TestTally compares the account with one that keeps every line.
func TestTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := []error{nil, nil, nil, task.Errorf(task.Invalid, "bad"), task.Errorf(task.OutcomeUnknown, "lost")}
		lines := rapid.SliceOf(rapid.SampledFrom([]int{0, 1, 2, 3, 4})).Draw(t, "lines")
		outcomes := make([]error, len(lines))
		var want account
		want.Resume = int64(len(lines)) + 1
		for i, kind := range lines {
			outcomes[i] = kinds[kind]
			switch {
			case outcomes[i] == nil && want.Resume <= int64(i):
				want.Added++
				want.Behind++
			case outcomes[i] == nil:
				want.Added++
			default:
				want.Resume = min(want.Resume, int64(i)+1)
				if kind == 4 {
					want.Unknown++
				}
			}
		}
		var tally tally
		tally.took(len(lines))
		for _, b := range rapid.Permutation(cut(outcomes)).Draw(t, "order of settling") {
			tally.settle(b.first, b.outcomes)
		}
		if got := tally.sofar(); got != want {
			t.Fatalf("lines %v give %+v, want %+v", lines, got, want)
		}
	})
}

type settledBatch struct {
	first    int64
	outcomes []error
}

// cut makes batches of three.
func cut(outcomes []error) []settledBatch {
	var batches []settledBatch
	for i := 0; i < len(outcomes); i += 3 {
		batches = append(batches, settledBatch{int64(i) + 1, outcomes[i:min(i+3, len(outcomes))]})
	}
	return batches
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", 200_000)
	r := bufio.NewReaderSize(strings.NewReader("a\n\n"+long+"\r\nlast"), 4096)
	for _, want := range []string{"a", "", long + "\r", "last"} {
		line, size, err := readLine(r)
		if err != nil || string(line) != want {
			t.Errorf("got %d bytes, %v, want %d", len(line), err, len(want))
		}
		if size < len(want) || size > len(want)+1 {
			t.Errorf("a line of %d bytes took %d", len(want), size)
		}
	}
	if _, _, err := readLine(r); !errors.Is(err, io.EOF) {
		t.Errorf("the end gives %v", err)
	}
	if _, _, err := readLine(bufio.NewReader(io.LimitReader(zeros{}, maxLine+10))); !errors.Is(err, errLineTooLong) {
		t.Errorf("an endless line gives %v", err)
	}
}

// zeros is an endless line.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestProgressLine(t *testing.T) {
	if got, want := progressLine(1000, 2*time.Second, 50, 100), "[###############---------------]  50%  1000 tasks added, 500/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := progressLine(1000, 2*time.Second, 50, 0), "1000 tasks added, 500/s"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := progressLine(1, 0, 500, 100); !strings.Contains(got, "100%") {
		t.Errorf("an input that grew gives %q", got)
	}
}

// options parses flags of `task add` and returns what they say of a task.
func options(t *testing.T, args ...string) (*matchingpb.TaskOptions, error) {
	t.Helper()
	var f taskFlags
	set := pflag.NewFlagSet("add", pflag.ContinueOnError)
	f.add(set)
	if err := set.Parse(args); err != nil {
		return nil, err
	}
	return f.options(set)
}

func TestTaskOptions(t *testing.T) {
	got, err := options(t, "--priority", "1", "--delay", "10m", "--expiry", "1h", "--max-attempts", "4", "--lease", "5s",
		"--header", "a=b", "--header", "c=d=e", "--durability", "hand-off")
	if err != nil {
		t.Fatal(err)
	}
	if got.GetPriority() != 1 || got.GetDelay().AsDuration() != 10*time.Minute || got.GetExpiry().AsDuration() != time.Hour ||
		got.GetMaxAttempts() != 4 || got.GetLeaseDuration().AsDuration() != 5*time.Second ||
		got.GetHeaders()["a"] != "b" || got.GetHeaders()["c"] != "d=e" ||
		got.GetDurability() != matchingpb.Durability_DURABILITY_HAND_OFF {
		t.Errorf("got %v", got)
	}
	if got, err := options(t); err != nil || got.GetStart() != nil || got.GetExpiry() != nil || got.GetLeaseDuration() != nil {
		t.Errorf("without flags: %v, %v", got, err)
	}
	for _, bad := range [][]string{
		{"--priority", "0"}, {"--header", "novalue"}, {"--header", "=x"}, {"--delay", "-1s"}, {"--durability", "maybe"},
	} {
		if _, err := options(t, bad...); exit.Of(err) != exit.Usage {
			t.Errorf("%v gives %v, want a usage error", bad, err)
		}
	}
}

func TestPrintTasks(t *testing.T) {
	var b bytes.Buffer
	if err := printTasks(&b, "json", []*matchingpb.TaskDescription{
		{Id: 1 << 60, State: matchingpb.TaskState_TASK_STATE_READY, Payload: []byte("text")},
		{Id: 2, Payload: []byte{0xff}},
	}, true); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 2 || !strings.Contains(lines[0], `"id":"1152921504606846976"`) || !strings.Contains(lines[0], `"payload":"text"`) ||
		!strings.Contains(lines[0], `"state":"ready"`) || !strings.Contains(lines[1], `"payload_base64":"/w=="`) {
		t.Errorf("got:\n%s", b.String())
	}
	if _, err := parseStates([]string{"ready", "bogus"}); exit.Of(err) != exit.Usage {
		t.Errorf("a bad state gives %v", err)
	}
	if got, err := parseStates([]string{"dead", "Leased"}); err != nil || len(got) != 2 {
		t.Errorf("got %v, %v", got, err)
	}
}

// plain is a run that prints for people.
func plain() *adding {
	format := output.Table
	return &adding{format: &format}
}
