// Package output writes what the commands have to say to people and to
// programs: tables that fit a terminal of 80 columns, or JSON with one object a
// line.
//
// Data goes to standard output and nothing else does; diagnostics, progress and
// logs go to standard error. Task ids are strings in JSON, because they exceed
// what a JSON number holds without loss. There are no colors, so NO_COLOR has
// nothing to turn off.
package output
