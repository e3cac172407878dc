package retry

import (
	_ "google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/status" // want "google.golang.org/grpc/status is only for .*matching/wire.*pass plain values"
)
