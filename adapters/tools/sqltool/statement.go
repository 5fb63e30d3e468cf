package sqltool

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Mistakes of a statement.
var (
	errUnclosed = errors.New("a quote or a comment is not closed")
	errSeveral  = errors.New("more than one statement in one SQL text")
)

// statement is an SQL text whose :names have become the placeholders of a
// dialect. The names are in the order of their numbers. Values are only ever
// bound, never written into the text.
type statement struct {
	text  string
	names []string
}

// prepare reads an SQL text. A :name outside strings, quoted identifiers,
// comments and :: casts is a parameter; the same name twice is one parameter.
// A second statement behind a semicolon is refused, so that a read-only query
// cannot be followed by anything.
func prepare(text string, d dialect) (statement, error) {
	l := lexer{src: text, d: d}
	for l.pos < len(l.src) {
		if err := l.next(); err != nil {
			return statement{}, err
		}
	}
	return statement{text: strings.TrimSpace(l.out.String()), names: l.names}, nil
}

type lexer struct {
	src   string
	pos   int
	d     dialect
	out   strings.Builder
	names []string
	ended bool // a semicolon was seen
}

func (l *lexer) next() error {
	rest := l.src[l.pos:]
	switch c := rest[0]; {
	case c == '\'':
		return l.copyQuoted('\'', l.d == postgres && l.escapesBefore())
	case c == '"', c == '`' && l.d == sqliteDialect:
		return l.copyQuoted(c, false)
	case c == '[' && l.d == sqliteDialect:
		return l.copyThrough("]", 1)
	case strings.HasPrefix(rest, "--"):
		l.skipLine()
		return nil
	case strings.HasPrefix(rest, "/*"):
		return l.skipBlock()
	case c == '$' && l.d == postgres:
		return l.dollar()
	case strings.HasPrefix(rest, "::"), strings.HasPrefix(rest, ":="):
		return l.emit(2)
	case c == ':' && len(rest) > 1 && isNameStart(rest[1]):
		return l.parameter()
	case c == ';':
		l.ended = true
		l.pos++
		return nil
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		l.out.WriteByte(c)
		l.pos++
		return nil
	}
	return l.emit(l.wordLength())
}

// wordLength keeps words together, so that a name that ends in e is not taken
// for the prefix of an escape string.
func (l *lexer) wordLength() int {
	n := l.pos
	for n < len(l.src) && (isNamePart(l.src[n]) || l.src[n] >= 0x80) {
		n++
	}
	return max(n-l.pos, 1)
}

func (l *lexer) emit(n int) error {
	if l.ended {
		return errSeveral
	}
	l.out.WriteString(l.src[l.pos : l.pos+n])
	l.pos += n
	return nil
}

// escapesBefore says whether the quote at pos opens an E'...' string, in which
// a backslash escapes.
func (l *lexer) escapesBefore() bool {
	if l.pos == 0 || (l.src[l.pos-1] != 'E' && l.src[l.pos-1] != 'e') {
		return false
	}
	return l.pos == 1 || !isNamePart(l.src[l.pos-2]) && l.src[l.pos-2] < 0x80
}

// copyQuoted copies a quoted text. A doubled quote is two texts in a row, which
// copies right as well.
func (l *lexer) copyQuoted(q byte, backslash bool) error {
	for i := l.pos + 1; i < len(l.src); i++ {
		switch {
		case backslash && l.src[i] == '\\':
			i++
		case l.src[i] == q && i+1 < len(l.src) && l.src[i+1] == q:
			i++
		case l.src[i] == q:
			return l.emit(i + 1 - l.pos)
		}
	}
	return errUnclosed
}

func (l *lexer) copyThrough(end string, from int) error {
	n := strings.Index(l.src[l.pos+from:], end)
	if n < 0 {
		return errUnclosed
	}
	return l.emit(from + n + len(end))
}

// dollar copies a $tag$...$tag$ string, or a lone dollar sign.
func (l *lexer) dollar() error {
	n := l.pos + 1
	for n < len(l.src) && isNamePart(l.src[n]) {
		n++
	}
	if n == len(l.src) || l.src[n] != '$' || l.pos > 0 && isNamePart(l.src[l.pos-1]) {
		return l.emit(n - l.pos)
	}
	tag := l.src[l.pos : n+1]
	return l.copyThrough(tag, len(tag))
}

// skipLine leaves a comment out; what separates two words stays.
func (l *lexer) skipLine() {
	if n := strings.IndexByte(l.src[l.pos:], '\n'); n >= 0 {
		l.pos += n
		return
	}
	l.pos = len(l.src)
}

// skipBlock leaves a comment out. PostgreSQL nests them, SQLite does not.
func (l *lexer) skipBlock() error {
	depth := 0
	for i := l.pos; i < len(l.src)-1; i++ {
		switch l.src[i : i+2] {
		case "/*":
			if depth == 0 || l.d == postgres {
				depth++
			}
			i++
		case "*/":
			depth--
			i++
		}
		if depth == 0 {
			l.pos = i + 1
			l.out.WriteByte(' ')
			return nil
		}
	}
	return errUnclosed
}

func (l *lexer) parameter() error {
	if l.ended {
		return errSeveral
	}
	n := l.pos + 1
	for n < len(l.src) && isNamePart(l.src[n]) {
		n++
	}
	name := l.src[l.pos+1 : n]
	at := slices.Index(l.names, name)
	if at < 0 {
		l.names = append(l.names, name)
		at = len(l.names) - 1
	}
	l.out.WriteString(l.d.placeholder(at + 1))
	l.pos = n
	return nil
}

// bind gives the arguments of the statement in order.
func (s statement) bind(args map[string]any) ([]any, error) {
	out := make([]any, len(s.names))
	for i, name := range s.names {
		v, given := args[name]
		if !given {
			return nil, fmt.Errorf("parameter :%s has no argument", name)
		}
		bound, err := bindable(v)
		if err != nil {
			return nil, fmt.Errorf("parameter :%s: %w", name, err)
		}
		out[i] = bound
	}
	return out, nil
}

func isNameStart(b byte) bool {
	return b == '_' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}

func isNamePart(b byte) bool { return isNameStart(b) || b >= '0' && b <= '9' }

// dialect is what differs between the two databases.
type dialect int

const (
	postgres dialect = iota
	sqliteDialect
)

func (d dialect) placeholder(n int) string {
	if d == sqliteDialect {
		return "?" + strconv.Itoa(n)
	}
	return "$" + strconv.Itoa(n)
}
