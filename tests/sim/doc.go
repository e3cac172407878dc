// Package sim plays one partition through seeded random lives: producers,
// workers that complete, fail, dawdle and repeat themselves, crashes, planned
// unloads, takeovers, slow reads, and a store that refuses or leaves open what
// it did. Time is virtual and there is one thread, so that a seed replays
// exactly.
//
// Beside the real core runs a dumb model, which only remembers what callers were
// told. After each step the promises of the architecture are checked against it:
//
//	P1  what was accepted is finished, or is handed out in the end
//	P2  nobody gets a task that another worker holds, except after a crash, a
//	    lost partition or an expired lease
//	P3  what was completed with OK is never handed out again
//	P4  what was refused is never handed out
//	P5  tasks of one priority are first handed out in the order of their ids
//
// A failing seed prints the command that replays it. Hits of each row of the
// interleaving and outcome tables are counted over all seeds; a row that no seed
// ever hit fails the run, as its promise was not tried.
package sim
