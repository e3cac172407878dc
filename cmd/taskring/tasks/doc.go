// Package tasks is `taskring task`: add tasks and look at them.
//
// `task add --lines` is the bulk way in. Lines become tasks in batches; a batch
// takes what has been read while the batches before it were under way, so a slow
// source has each line added at once and a fast one has full batches. By default
// one batch is under way at a time, which keeps the tasks of a partition in the
// order of the lines; --outstanding trades that order for speed.
//
// When a batch fails, no further one is sent. What is reported then is exact:
// the first line that is not surely added, from which to go on, and how many
// lines behind it are added nevertheless or may be.
package tasks
