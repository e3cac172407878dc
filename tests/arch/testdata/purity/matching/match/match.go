package match

import (
	"context" // want "may not import context: a core never waits"
	"log/slog" // want "may not import log/slog: return what happened"
	"math/rand/v2"
	"time"
)

func init() {} // want "may not have an init"

func next(ctx context.Context, rng *rand.Rand, now time.Time) time.Duration {
	slog.Info("next")
	if rand.IntN(2) == 0 { // want "may not use the global source by math/rand/v2.IntN: take a .rand.Rand"
		return time.Since(now) // want "may not call time.Since: take .now time.Time. as an argument"
	}
	rng = rand.New(rand.NewPCG(1, 2))
	return time.Duration(rng.IntN(2)) * time.Second
}
