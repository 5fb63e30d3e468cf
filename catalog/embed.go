// Package catalog holds what an institution declares: words, intents, agents
// and tools. It has no logic; internal/catalog reads it.
package catalog

import "embed"

// FS is the embedded catalog. The folder demo is a complete small institution
// of its own, used by --demo only.
//
//go:embed agents.yaml tools.yaml intents messages demo
var FS embed.FS
