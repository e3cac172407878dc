// Package queues is `taskring queue` and `taskring partition`: what task queues
// there are, how much rests in them, who polls them and who holds their
// partitions.
package queues
