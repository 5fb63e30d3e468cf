package catalog

import (
	"fmt"
	"slices"
	"strings"
)

// ProblemsError is everything that is wrong with a catalog, named at once, so that
// its author does not correct it one start at a time.
type ProblemsError []string

// Error lists the problems, one a line.
func (p ProblemsError) Error() string {
	return fmt.Sprintf("catalog has %d problem(s):\n  %s", len(p), strings.Join(p, "\n  "))
}

func (l *loader) problem(where, format string, args ...any) {
	l.problems = append(l.problems, where+": "+fmt.Sprintf(format, args...))
}

func (p ProblemsError) err() error {
	if len(p) == 0 {
		return nil
	}
	sorted := slices.Clone(p)
	slices.Sort(sorted)
	return sorted
}
