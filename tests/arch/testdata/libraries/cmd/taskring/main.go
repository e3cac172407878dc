package main

import (
	_ "github.com/spf13/cobra"
	_ "go.uber.org/fx"
)
