// Package matching is the server: it takes tasks, keeps them and hands them out.
package matching
