package wire

import (
	"github.com/taskring/taskring/dynamicconfig"
	"github.com/taskring/taskring/matching/matchingpb"
	"github.com/taskring/taskring/partition"
)

// EncodeConstraints returns the form of the wire.
func EncodeConstraints(c dynamicconfig.Constraints) *matchingpb.SettingConstraints {
	return &matchingpb.SettingConstraints{
		Namespace: c.Namespace, TaskQueueName: c.TaskQueueName, TaskType: matchingpb.TaskType(c.TaskType),
	}
}

// DecodeConstraints reads what a node said of a value.
func DecodeConstraints(c *matchingpb.SettingConstraints) dynamicconfig.Constraints {
	return dynamicconfig.Constraints{
		Namespace: c.GetNamespace(), TaskQueueName: c.GetTaskQueueName(), TaskType: partition.TaskType(c.GetTaskType()),
	}
}

// EncodeEntry returns an entry of a setting with that default.
func EncodeEntry(e dynamicconfig.Entry, fallback string) *matchingpb.SettingEntry {
	return &matchingpb.SettingEntry{
		Key: e.Key, Value: e.Value, Constraints: EncodeConstraints(e.Constraints), Line: int32(e.Line), DefaultValue: fallback,
	}
}

// EncodeDefault returns the value of a setting that no entry gives one.
func EncodeDefault(about dynamicconfig.Description) *matchingpb.SettingEntry {
	return &matchingpb.SettingEntry{
		Key: about.Key, Value: about.Default, Constraints: &matchingpb.SettingConstraints{}, IsDefault: true, DefaultValue: about.Default,
	}
}

// DecodeEntry reads an entry that a node sent.
func DecodeEntry(e *matchingpb.SettingEntry) dynamicconfig.Entry {
	return dynamicconfig.Entry{
		Key: e.GetKey(), Value: e.GetValue(), Constraints: DecodeConstraints(e.GetConstraints()), Line: int(e.GetLine()),
	}
}

// EncodeCandidate returns an entry that might have won, of a setting with that
// default.
func EncodeCandidate(c dynamicconfig.Candidate, fallback string) *matchingpb.SettingCandidate {
	return &matchingpb.SettingCandidate{Entry: EncodeEntry(c.Entry, fallback), Holds: c.Holds, Wins: c.Wins, Why: c.Why}
}

// DecodeCandidate reads a candidate that a node sent.
func DecodeCandidate(c *matchingpb.SettingCandidate) dynamicconfig.Candidate {
	return dynamicconfig.Candidate{Entry: DecodeEntry(c.GetEntry()), Holds: c.GetHolds(), Wins: c.GetWins(), Why: c.GetWhy()}
}
