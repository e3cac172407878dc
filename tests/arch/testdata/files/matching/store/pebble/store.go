package pebble

import "os"

var dir = os.MkdirAll("data", 0o750)
