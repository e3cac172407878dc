package pebble

func runChild() {}
