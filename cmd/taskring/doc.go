// Command taskring runs matching nodes, adds tasks, works on them, shows what
// there is and measures it.
//
//	taskring server              a node
//	taskring frontend            a process that routes to nodes
//	taskring task add|get|peek   tasks
//	taskring work                a worker that runs a command for each task
//	taskring queue|partition     what there is
//	taskring node                what a node is and has loaded
//	taskring ring                how partitions are placed on nodes
//	taskring config              dynamic settings, of files and of nodes
//	taskring bench               how fast it is here
//
// The packages below hold one command each; they share
//
//	exit       codes to end with, and errors that say what to do next
//	output     tables and JSON
//	remote     --address, --queue and the like
//	usage      what is wrong with what was typed, and what the shell completes
//	env        environment variables in place of flags
//	dynamic    the dynamic settings that there are, and --dynamic-config
//	logs       --log-format and --log-level
//	members    the nodes of a ring as a flag
//	interrupt  the first and the second signal
//	child      a server of one's own as a child process
//
// Data goes to standard output, everything else to standard error.
package main

//go:generate go run . config docs --out ../../docs/settings.md
