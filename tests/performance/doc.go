// Command performance measures `taskring bench` in its modes and writes the
// page docs/performance.md: machine, commands, figures and the budget of one
// task.
//
// Each run starts a server of its own on an empty directory and checks every
// task id; the page has the median of each figure over several runs; a run that lost a task, or handed one out twice, fails the whole
// measurement, and the page keeps its last content.
//
// Usage: performance -taskring BINARY -out PAGE [-runs N] [-scale N]. With
// -scale 100 each run has a hundredth of its tasks, which shows that the page can be
// written but measures nothing.
package main
