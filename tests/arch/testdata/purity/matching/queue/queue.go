package queue

import (
	"context"
	"time"
)

var started, background = time.Now(), context.Background()
