// Package migrations holds the numbered SQL of the store, one folder for each
// database. It is a file system and nothing else: the store applies it.
package migrations

import "embed"

// FS has the folders "postgres" and "sqlite".
//
//go:embed postgres/*.sql sqlite/*.sql
var FS embed.FS
