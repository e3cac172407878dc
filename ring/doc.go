// Package ring is a placeholder comment long enough.
package ring
