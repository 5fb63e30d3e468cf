package contract

import "golang.org/x/text/language"

// longestAccept bounds the header that is looked at.
const longestAccept = 500

// Languages chooses the language of an answer. Safe for concurrent use.
type Languages struct {
	codes   []string
	matcher language.Matcher
}

// NewLanguages takes the languages that the catalog has; the first is used when
// the caller asks for none of them.
func NewLanguages(first string, others ...string) Languages {
	l := Languages{codes: []string{first}}
	for _, o := range others {
		if o != first {
			l.codes = append(l.codes, o)
		}
	}
	tags := make([]language.Tag, len(l.codes))
	for i, c := range l.codes {
		tags[i] = language.Make(c)
	}
	l.matcher = language.NewMatcher(tags)
	return l
}

// Choose gives the best language for an Accept-Language header; one that is
// missing, malformed or about other languages gives the first.
func (l Languages) Choose(accept string) string {
	if accept == "" || len(accept) > longestAccept {
		return l.codes[0]
	}
	tags, _, err := language.ParseAcceptLanguage(accept)
	if err != nil {
		return l.codes[0]
	}
	_, i, confidence := l.matcher.Match(tags...)
	if confidence == language.No {
		return l.codes[0]
	}
	return l.codes[i]
}

// All lists the languages, the first first.
func (l Languages) All() []string { return l.codes }
