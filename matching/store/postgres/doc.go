// Package postgres is the shared durable store of many nodes.
package postgres
