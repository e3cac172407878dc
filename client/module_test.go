package client

import (
	"testing"

	"go.uber.org/fx"
	"go.uber.org/fx/fxtest"
)

func TestModule(t *testing.T) {
	var c *Client
	app := fxtest.New(t, Module(), fx.Supply(Options{Addresses: []string{"n0"}}), fx.Populate(&c))
	app.RequireStart()
	if at, err := c.Route(testQueue.Partition(0)); err != nil || at != "n0" {
		t.Errorf("the root lies on %q, %v", at, err)
	}
	app.RequireStop()
	if !c.stopped.Load() {
		t.Error("the client goes on after its application stopped")
	}
}
