package client

import (
	"context"

	"go.uber.org/fx"
)

// Module offers a [*Client], made of the [Options] that the application
// provides, to fx applications. It is stopped with the application.
func Module() fx.Option {
	return fx.Module("taskring-client", fx.Provide(newForFx))
}

func newForFx(options Options, life fx.Lifecycle) (*Client, error) {
	c, err := NewClient(options)
	if err != nil {
		return nil, err
	}
	life.Append(fx.Hook{OnStop: func(ctx context.Context) error {
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			c.Stop()
		}()
		return waitFor(ctx, stopped)
	}})
	return c, nil
}
