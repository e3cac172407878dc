package server

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/dynamicconfig/file"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/matching/task"
	"github.com/taskring/taskring/matching/wire"
	"github.com/taskring/taskring/partition"
)

// Answers hold so much at most, however much is wrong with a file or in it.
const (
	maxCandidates = 1000 // entries of an explanation
	maxMistakes   = 100  // of a file that is refused
)

// About is what a handler tells of the node that it serves. Zero fields are left
// out of the answers.
type About struct {
	HTTPAddress string // HOST:PORT of probes and metrics
	Version     string // of the software
	StartedAt   time.Time

	Registry *dynamicconfig.Registry        // the settings that there are; default those of [Declared]
	Snapshot func() *dynamicconfig.Snapshot // the dynamic settings in force; default all defaults
	Status   func() file.Status             // of the file that is followed; default by Snapshot alone
}

func (a *About) complete() error {
	if a.Snapshot == nil {
		a.Snapshot = func() *dynamicconfig.Snapshot { return nil }
	}
	if a.Status == nil {
		a.Status = func() file.Status { return file.Status{Hash: a.Snapshot().Hash()} }
	}
	if a.Registry != nil {
		return nil
	}
	var err error
	a.Registry, err = dynamicconfig.NewRegistry(Declared()...)
	return err
}

// DescribeNode tells what the node is and what it has loaded.
func (h *Handler) DescribeNode(_ context.Context, r *matchingpb.DescribeNodeRequest) (*matchingpb.DescribeNodeResponse, error) {
	about := &h.cfg.About
	id := h.cfg.Engine.StoreID()
	loaded := h.cfg.Engine.Partitions()
	out := &matchingpb.DescribeNodeResponse{
		Node: wire.EncodeHolder(h.cfg.Engine.Holder()), HttpAddress: about.HTTPAddress, Version: clean(about.Version),
		StartedAt: encodeTime(about.StartedAt), StoreId: id[:], Settings: statusOf(about.Status()),
		LoadedPartitions: int64(len(loaded)),
	}
	if !r.GetIncludePartitions() {
		return out, nil
	}
	var f wire.Fields
	size := h.settings().pageSize(&f, r.GetPageSize())
	from := 0
	if r.GetPageToken() != "" {
		after, err := parsePartitionToken(r.GetPageToken())
		if err != nil {
			f.Addf("page_token", "is not one that this method gave out: %v", err)
		}
		from, _ = slices.BinarySearchFunc(loaded, after, partition.ID.Compare)
		if from < len(loaded) && loaded[from] == after {
			from++
		}
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	end := min(from+size, len(loaded))
	for _, p := range loaded[from:end] {
		out.Partitions = append(out.Partitions, wire.EncodePartition(p))
	}
	var err error
	if end < len(loaded) {
		out.NextPageToken, err = partitionToken(loaded[end-1])
	}
	return out, err
}

func partitionToken(p partition.ID) (string, error) {
	b, err := proto.Marshal(wire.EncodePartition(p))
	if err != nil {
		return "", task.Errorf(task.Internal, "encoding a page token: %w", err)
	}
	return encodeToken(b), nil
}

func parsePartitionToken(token string) (partition.ID, error) {
	b, err := decodeToken(token)
	if err != nil {
		return partition.ID{}, err
	}
	var m matchingpb.TaskQueuePartition
	if err := proto.Unmarshal(b, &m); err != nil {
		return partition.ID{}, errMalformed
	}
	return wire.DecodePartition("partition", &m)
}

// GetSettings lists the dynamic settings in force.
func (h *Handler) GetSettings(_ context.Context, r *matchingpb.GetSettingsRequest) (*matchingpb.GetSettingsResponse, error) {
	var f wire.Fields
	size := h.settings().pageSize(&f, r.GetPageSize())
	in := h.cfg.About.Snapshot()
	from, err := parseSettingsToken(r.GetPageToken(), in.Hash())
	if err != nil {
		f.Addf("page_token", "%v", err)
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	entries := h.entries(in, r)
	from = min(from, len(entries))
	end := min(from+size, len(entries))
	out := &matchingpb.GetSettingsResponse{
		Node: wire.EncodeHolder(h.cfg.Engine.Holder()), Status: statusOf(h.cfg.About.Status()), Entries: entries[from:end],
	}
	if end < len(entries) {
		out.NextPageToken = encodeToken([]byte(in.Hash() + ":" + strconv.Itoa(end)))
	}
	return out, nil
}

// entries returns what a request asks for of a snapshot.
func (h *Handler) entries(in *dynamicconfig.Snapshot, r *matchingpb.GetSettingsRequest) []*matchingpb.SettingEntry {
	defaults := map[string]string{}
	var abouts []dynamicconfig.Description
	for _, def := range h.cfg.About.Registry.Settings() {
		about := def.About()
		if strings.HasPrefix(strings.ToLower(about.Key), strings.ToLower(r.GetKeyPrefix())) {
			defaults[about.Key] = about.Default
			abouts = append(abouts, about)
		}
	}
	var entries []*matchingpb.SettingEntry
	everywhere := map[string]bool{}
	for _, e := range in.Entries() {
		fallback, wanted := defaults[e.Key]
		if !wanted {
			continue
		}
		entries = append(entries, wire.EncodeEntry(e, fallback))
		if (e.Constraints == dynamicconfig.Constraints{}) {
			everywhere[e.Key] = true
		}
	}
	for _, about := range abouts {
		if r.GetIncludeDefaults() && !everywhere[about.Key] {
			entries = append(entries, wire.EncodeDefault(about))
		}
	}
	return entries
}

// parseSettingsToken reads where a page begins, in settings with that hash.
func parseSettingsToken(token, hash string) (int, error) {
	if token == "" {
		return 0, nil
	}
	b, err := decodeToken(token)
	if err != nil {
		return 0, fmt.Errorf("is not one that this method gave out: %w", err)
	}
	of, index, _ := strings.Cut(string(b), ":")
	n, err := strconv.Atoi(index)
	switch {
	case err != nil || n < 0:
		return 0, fmt.Errorf("is not one that this method gave out: %w", errMalformed)
	case of != hash:
		return 0, fmt.Errorf("is of settings with hash %q, meanwhile those with hash %q are in force: begin again without a token", of, hash)
	}
	return n, nil
}

// ExplainSetting tells which entry gives a setting its value.
func (h *Handler) ExplainSetting(_ context.Context, r *matchingpb.ExplainSettingRequest) (*matchingpb.ExplainSettingResponse, error) {
	var f wire.Fields
	about := &h.cfg.About
	def, err := about.Registry.Find(r.GetKey())
	if err != nil {
		f.Addf("key", "%v", err)
	}
	if _, known := matchingpb.TaskType_name[int32(r.GetTaskType())]; !known {
		f.Addf("task_type", "is %d, the task types are 1 (workflow), 2 (activity), 3 (dispatch); 0 is none that an entry names", r.GetTaskType())
	}
	if err := f.Err(); err != nil {
		return nil, err
	}
	q := partition.Queue{Namespace: r.GetNamespace(), Name: r.GetTaskQueueName(), Type: partition.TaskType(r.GetTaskType())}
	x, described := about.Snapshot().Explain(def, q, time.Now()), def.About()
	out := &matchingpb.ExplainSettingResponse{
		Node: wire.EncodeHolder(h.cfg.Engine.Holder()), Status: statusOf(about.Status()),
		Key: x.Key, Value: x.Value, DefaultValue: x.Default, IsDefault: x.IsDefault, Gradual: x.Gradual,
		Scope: described.Scope.String(), Description: described.Doc,
		LeftOut: int64(max(len(x.Candidates)-maxCandidates, 0)),
	}
	for _, c := range x.Candidates[:min(len(x.Candidates), maxCandidates)] {
		out.Candidates = append(out.Candidates, wire.EncodeCandidate(c, x.Default))
	}
	return out, nil
}

func statusOf(s file.Status) *matchingpb.SettingsStatus {
	out := &matchingpb.SettingsStatus{
		Hash: s.Hash, LoadedAt: encodeTime(s.LoadedAt), Path: clean(s.Path), FailingSince: encodeTime(s.FailingSince),
	}
	if s.Failing != nil {
		out.Failing = clean(firstLines(s.Failing.Error(), maxMistakes))
	}
	return out
}

// clean makes a text that comes from outside one that a message may hold.
func clean(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// firstLines returns the first lines of a text.
func firstLines(s string, most int) string {
	lines := strings.Split(s, "\n")
	if rest := len(lines) - most; rest > 0 {
		lines = append(lines[:most], fmt.Sprintf("and %d more", rest))
	}
	return strings.Join(lines, "\n")
}

// encodeTime returns nil for the zero time.
func encodeTime(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
