package ring

// FIXME later. want "says FIXME, unfinished work"
const home = "/root/taskring" // want "says /root/, a path of one machine"
