package matching

import "go.uber.org/fx"

// Module provides a *Node made from a Config, and starts and stops it with the
// application.
//
//	fx.New(fx.Supply(matching.Config{DataDir: "./data"}), matching.Module())
func Module() fx.Option {
	return fx.Module("matching",
		fx.Provide(New),
		fx.Invoke(func(lc fx.Lifecycle, n *Node) {
			lc.Append(fx.Hook{OnStart: n.Start, OnStop: n.Stop})
		}),
	)
}
