// Package file feeds dynamic settings from a YAML file and follows the file as it
// changes.
//
// # What counts as a change
//
// The content, by its hash; never the modification time, so that putting an older
// file back counts too. The directory is watched and not the file, because most
// who write one put another in its place:
//
//	editors                write config.yaml.new, rename it to config.yaml
//	Kubernetes ConfigMaps  config.yaml -> ..data/config.yaml, ..data -> ..2026_12_01
//	                       swap the link ..data
//	scripts                truncate and write, or delete and create
//
// Where notification does not work, as on some network file systems, or is lost,
// the file is read again every [Config.Poll].
//
// # Half-written files
//
// A file is read for good only after it has held still for [Config.Settle]. When
// its end looks unfinished, as it is empty, lacks the last line end or is
// missing, then for ten times as long: half a YAML file is often right and means
// something else, and an empty one means all defaults. A file that never holds
// still is reported as a failure after a minute.
//
//	written    t=0.0 "a: 1\nb:"   t=0.3 "a: 1\nb: 2\n"
//	looked at  t=0.02             t=0.32        t=0.82: unchanged for 0.5 s, loaded
//
// # A file with a mistake
//
// changes nothing: the last good values stay in force. It is said until a good
// file is loaded, by the metric dynamic_config_load_failed, by [Source.Status],
// and in the log, which repeats it once a minute at most. At start such a file is
// an error, unless [Config.StartOnDefaults] is set. A file that is missing is a
// mistake, an empty one is not.
//
// # Metrics
//
//	dynamic_config_load_failed               1 while the present file is not in force
//	dynamic_config_info{hash}                1; hash begins the SHA-256 of the file in force
//	dynamic_config_loaded_timestamp_seconds  when that was loaded
//
// # Map
//
//	file.go    Config, Open, reading the file
//	source.go  Start, Stop, the loop
//	settle.go  when a file has settled: a pure state machine
//	judge.go   loading, failing, what is logged
//	watch.go   notification
package file
