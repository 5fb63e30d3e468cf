package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// Problems is everything that is wrong with a catalog, named at once, so that
// its author does not correct it one start at a time.
type Problems []string

// Error lists the problems, one a line.
func (p Problems) Error() string {
	return fmt.Sprintf("catalog has %d problem(s):\n  %s", len(p), strings.Join(p, "\n  "))
}

func (p *Problems) add(where, format string, args ...any) {
	*p = append(*p, where+": "+fmt.Sprintf(format, args...))
}

func (p Problems) err() error {
	if len(p) == 0 {
		return nil
	}
	sorted := slices.Clone(p)
	slices.Sort(sorted)
	return sorted
}
