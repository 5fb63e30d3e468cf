// Package policies holds the embedded Rego policies and their tests. It has no
// logic; adapters/opa runs them.
package policies

import "embed"

// FS is the embedded folder.
//
//go:embed *.rego
var FS embed.FS
