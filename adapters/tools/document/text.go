package document

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFragment bounds a fragment, in bytes: enough to recognise the passage, not
// a copy of the document.
const maxFragment = 320

type frontMatter struct {
	ID    string `yaml:"id"`
	Title string `yaml:"title"`
}

// split separates the front matter, between two lines of three hyphens, from
// the body.
func split(text string) (frontMatter, string, error) {
	var f frontMatter
	text = strings.ReplaceAll(text, "\r\n", "\n")
	rest, ok := strings.CutPrefix(text, "---\n")
	head, body, closed := strings.Cut(rest, "\n---\n")
	if !ok || !closed {
		return f, "", errors.New("no front matter")
	}
	if err := yaml.Unmarshal([]byte(head), &f); err != nil {
		return f, "", fmt.Errorf("front matter: %w", err)
	}
	if f.ID == "" || f.Title == "" {
		return f, "", errors.New("front matter needs id and title")
	}
	return f, body, nil
}

// sections cuts a body at its headings, each with the text under it. A heading
// with nothing under it belongs to no section.
func sections(body string) []string {
	var out []string
	var heading string
	var lines []string
	flush := func() {
		text := strings.TrimSpace(strings.Join(lines, "\n"))
		lines = nil
		switch {
		case text == "":
			return
		case heading != "":
			text = heading + ". " + text
		}
		out = append(out, text)
	}
	for line := range strings.SplitSeq(body, "\n") {
		if strings.HasPrefix(line, "#") {
			flush()
			heading = strings.TrimSuffix(strings.TrimSpace(strings.TrimLeft(line, "#")), ".")
			continue
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	flush()
	return out
}

// fragment is a part of text around the first place where most of the matches
// stand together, cut at words, with an ellipsis where something is left out.
func fragment(text string, matches []int) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' {
			return ' '
		}
		return r
	}, text)
	if len(text) <= maxFragment {
		return text
	}
	from := 0
	slices.Sort(matches)
	best := 0
	for i, m := range matches {
		n := 0
		for _, other := range matches[i:] {
			if other < m+maxFragment*3/4 {
				n++
			}
		}
		if n > best {
			best, from = n, max(m-maxFragment/8, 0)
		}
	}
	from = min(from, len(text)-maxFragment)
	to := min(from+maxFragment, len(text))
	from, to = wordStart(text, from), wordEnd(text, to)
	out := strings.TrimSpace(text[from:to])
	if from > 0 {
		out = "… " + out
	}
	if to < len(text) {
		out += " …"
	}
	return out
}

func wordStart(s string, at int) int {
	if at == 0 {
		return 0
	}
	if n := strings.IndexByte(s[at:], ' '); n >= 0 && n < maxFragment/4 {
		return at + n + 1
	}
	for at < len(s) && !utf8.RuneStart(s[at]) {
		at++
	}
	return at
}

func wordEnd(s string, at int) int {
	if at >= len(s) {
		return len(s)
	}
	if n := strings.LastIndexByte(s[:at], ' '); n > at-maxFragment/4 {
		return n
	}
	for at > 0 && !utf8.RuneStart(s[at]) {
		at--
	}
	return at
}
