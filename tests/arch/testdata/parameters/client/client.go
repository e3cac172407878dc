package client

import (
	"context"
	"testing"
)

func four(ctx context.Context, a, b string, c int, d bool) {}

func five(a, b, c, d, e int) {} // want "five takes 5 parameters, the limit is 4: gather them in a struct"

func late(a, b, c, d int, ctx context.Context) {} // want "late takes 5 parameters"

func check(t *testing.T, a, b, c, d int) {}

type conn interface {
	call(context.Context, string, string, int, bool)
	send(string, string, int, bool, func()) // want "send takes 5 parameters"
}

var literal = func(a, b, c, d, e int) {}
