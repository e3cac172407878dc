// Package partition names things.
package partition // want "comment of partition is too short"
