// Package work is `taskring work`: a worker that runs a command for each task.
//
//	task --> handler --> process group of CMD   exit 0   completes the task
//	                      payload on stdin      other    fails it with the end of stderr
//	                      and for {} in ARGs
//
// No shell is involved, so a payload cannot become part of a command line by
// accident; whoever wants a shell names one.
//
// A task's process leads a process group of its own. When the lease of the task
// is lost, someone else works on it: the group gets SIGTERM, and SIGKILL
// [killAfter] later. A signal to the worker itself does not reach the groups: the
// worker takes no more tasks and waits for those that run; a second signal kills
// them.
//
// Output is passed on in whole lines, see [lines]. Idleness is decided by
// [idle], which trusts nothing but a fresh answer of the node.
package work
