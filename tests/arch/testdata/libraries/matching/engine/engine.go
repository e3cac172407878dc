package engine

import (
	_ "github.com/cockroachdb/pebble/v2" // want "pebble/v2 is only for matching/store/pebble"
	_ "github.com/hashicorp/memberlist"  // want "memberlist is only for ring/gossip"
	_ "go.uber.org/fx"                   // want "fx is only for matching, client"
)
