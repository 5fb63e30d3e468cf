// Package display makes text safe to be shown to a person who must judge it:
// characters that cannot be seen, or that change how others are seen, are
// written out, and what was found is told (governance section 6). Ordinary
// Spanish, Arabic and emoji stay as they are. It changes only what is shown:
// hashes are over the raw text.
package display

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind is a family of characters that deceive.
type Kind string

// The kinds.
const (
	Control    Kind = "control"
	Bidi       Kind = "bidi"
	ZeroWidth  Kind = "zero_width"
	PrivateUse Kind = "private_use"
	Unassigned Kind = "unassigned" // no character at all
)

// Text gives s with every deceiving character written as [U+XXXX], and the kinds
// that were found, sorted, each once; nil when s is ordinary.
func Text(s string) (shown string, found []Kind) {
	runes, valid := []rune(s), utf8.ValidString(s)
	var b strings.Builder
	for i, r := range runes {
		k := kindOf(r)
		if r == utf8.RuneError && !valid {
			k = Unassigned // a byte that is no UTF-8
		}
		if k == "" || (k == ZeroWidth && joins(runes, i)) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "[U+%04X]", r)
		if !slices.Contains(found, k) {
			found = append(found, k)
		}
	}
	slices.Sort(found)
	return b.String(), found
}

// JSON writes the deceiving characters of a JSON document as \u escapes, so that
// nobody who looks at the bytes is deceived. It means the same document: such
// characters can stand only inside strings. Joiners are left, because emoji and
// some scripts are written with them.
func JSON(doc []byte) []byte {
	if isPlain(doc) {
		return doc
	}
	out := make([]byte, 0, len(doc)+64)
	for _, r := range string(doc) {
		switch {
		case r == '\n' || isJoiner(r) || kindOf(r) == "":
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			r -= 0x10000
			out = fmt.Appendf(out, `\u%04x\u%04x`, 0xD800+(r>>10), 0xDC00+(r&0x3FF))
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func isPlain(doc []byte) bool {
	return !slices.ContainsFunc(doc, func(c byte) bool { return c >= utf8.RuneSelf || c == 0x7F })
}

func kindOf(r rune) Kind {
	switch {
	case r >= 0x20 && r < 0x7F:
		return ""
	case unicode.Is(unicode.Cc, r), r == '\u2028', r == '\u2029':
		return Control
	case unicode.Is(unicode.Bidi_Control, r):
		return Bidi
	case unicode.Is(unicode.Co, r):
		return PrivateUse
	case isVisibleFormat(r):
		return ""
	case unicode.Is(unicode.Cf, r), unicode.Is(unicode.Variation_Selector, r), isBlankLetter(r):
		return ZeroWidth
	case unicode.IsGraphic(r), isPictographBlock(r):
		return ""
	}
	return Unassigned
}

// isVisibleFormat: signs that Unicode counts as format characters although they
// are written, such as the Arabic number sign.
func isVisibleFormat(r rune) bool { return unicode.Is(unicode.Prepended_Concatenation_Mark, r) }

// isBlankLetter: letters and marks that have no form of their own.
func isBlankLetter(r rune) bool {
	switch r {
	case '\u034F', '\u115F', '\u1160', '\u17B4', '\u17B5', '\u3164', '\uFFA0':
		return true
	}
	return false
}

// isPictographBlock: emoji newer than the tables of this program.
func isPictographBlock(r rune) bool { return r >= 0x1F000 && r <= 0x1FAFF }

const (
	zwnj       = '\u200C'
	zwj        = '\u200D'
	textStyle  = '\uFE0E'
	emojiStyle = '\uFE0F'
	blackFlag  = '\U0001F3F4'
	firstTag   = '\U000E0020'
	cancelTag  = '\U000E007F'
)

func isJoiner(r rune) bool {
	return r == zwnj || r == zwj || r == textStyle || r == emojiStyle
}

// joins says whether the zero-width character at i does the work it is there
// for: joining emoji, choosing their style, or shaping letters.
func joins(runes []rune, i int) bool {
	if i == 0 {
		return false
	}
	before := runes[i-1]
	switch r := runes[i]; {
	case r == zwj || r == zwnj:
		if i+1 == len(runes) {
			return false
		}
		after := runes[i+1]
		return isShaped(before) && isShaped(after) || r == zwj && endsEmoji(before) && isEmoji(after)
	case r == textStyle || r == emojiStyle:
		return isEmoji(before) || isKeycap(before)
	case r >= '\U000E0100' && r <= '\U000E01EF':
		return unicode.Is(unicode.Han, before)
	case r >= firstTag && r <= cancelTag:
		return inFlag(runes, i)
	}
	return false
}

// isShaped: letters of the scripts that are written with joiners.
func isShaped(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali, unicode.Gurmukhi,
		unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala,
		unicode.Khmer, unicode.Myanmar)
}

func isEmoji(r rune) bool {
	return unicode.Is(unicode.So, r) || isPictographBlock(r) || r == '\u203C' || r == '\u2049' || r >= 0x2190 && r <= 0x2BFF ||
		r == '\u00A9' || r == '\u00AE' || r == '\u3030' || r == '\u303D'
}

func isKeycap(r rune) bool { return r >= '0' && r <= '9' || r == '#' || r == '*' }

func endsEmoji(r rune) bool { return isEmoji(r) || r == emojiStyle }

// inFlag: the tags of a regional flag follow the black flag and end with a
// cancel tag; at most six say which region.
func inFlag(runes []rune, i int) bool {
	start := i
	for start > 0 && runes[start] >= firstTag && runes[start] <= cancelTag {
		start--
	}
	end := i
	for end < len(runes) && runes[end] >= firstTag && runes[end] < cancelTag {
		end++
	}
	return runes[start] == blackFlag && end < len(runes) && runes[end] == cancelTag && end-start <= 7
}
