package partition

import (
	_ "strconv"

	_ "github.com/cespare/xxhash/v2" // want "partition may import the standard library only"
)
