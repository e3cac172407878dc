// Package usage says in the command's own words what is wrong with what was
// typed: a flag, its value, a variable in its place, or an argument. The libraries
// that parse these speak of the Go code around them; whoever typed a command
// wants to read what to type instead.
//
// All errors of the package are [exit.Usage] errors.
package usage
