// Package egress is the output guard: what is about to leave is searched for
// what must not (governance section 8). It is a pure function over values.
package egress

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Marker stands where something was cut.
const Marker = "[redactado]"

// MaxText bounds one string, in bytes; longer document text is cut.
const MaxText = 8 << 10

// The rules that are not patterns.
const (
	RuleMask        = "mask"         // policy named the field
	RuleSecretField = "secret_field" // the field's own name says that it is a secret
	RuleOversize    = "oversize"
)

// Guard implements harness.Guard. It has no state and is safe for concurrent
// use.
type Guard struct{}

var _ harness.Guard = Guard{}

// New makes a guard.
func New() Guard { return Guard{} }

// Inspect implements harness.Guard. result is JSON text of an object; mask are
// JSON pointers whose part "*" stands for every member, and which hide whatever
// is there. What is cut becomes Marker; each cut is reported by rule and JSON
// pointer, never by value. The guarded text is RFC 8785. An error means that
// nothing may leave: no JSON object, or a mask that is no pointer.
func (Guard) Inspect(result string, mask []string) (string, []harness.Redaction, error) {
	// The strict form first: a member twice would show one value here and could
	// show the other to whoever reads the text.
	strict, err := audit.CanonicalOf(json.RawMessage(result))
	if err != nil {
		return "", nil, fmt.Errorf("result: %w", err)
	}
	d := json.NewDecoder(strings.NewReader(strict))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		return "", nil, fmt.Errorf("result is no object: %w", err)
	}
	if root == nil {
		return "", nil, errors.New("result is no object")
	}
	w := &walk{}
	for _, m := range mask {
		parts, err := pointer(m)
		if err != nil {
			return "", nil, err
		}
		w.masks = append(w.masks, parts)
	}
	guarded := w.object(root, "", w.masks)
	if w.whole {
		guarded = map[string]any{}
	}
	text, err := audit.CanonicalOf(guarded)
	if err != nil {
		return "", nil, fmt.Errorf("guarded result: %w", err)
	}
	return text, w.cut, nil
}

// pointer reads a JSON pointer (RFC 6901).
func pointer(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	rest, ok := strings.CutPrefix(s, "/")
	if !ok {
		return nil, errors.New("a mask is no JSON pointer")
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	return parts, nil
}

type walk struct {
	masks [][]string
	cut   []harness.Redaction
	whole bool // a mask named the result itself
}

func (w *walk) report(rule, path string) {
	r := harness.Redaction{Rule: rule, Path: path}
	if !slices.Contains(w.cut[max(0, len(w.cut)-16):], r) {
		w.cut = append(w.cut, r)
	}
}

// below keeps the masks that go on at this member, without their first part,
// and says whether one ends here.
func below(masks [][]string, member string) (rest [][]string, here bool) {
	for _, m := range masks {
		if len(m) == 0 || (m[0] != member && m[0] != "*") {
			continue
		}
		if len(m) == 1 {
			here = true
		}
		rest = append(rest, m[1:])
	}
	return rest, here
}

func (w *walk) object(in map[string]any, path string, masks [][]string) map[string]any {
	if path == "" && slices.ContainsFunc(masks, func(m []string) bool { return len(m) == 0 }) {
		w.whole = true
		w.report(RuleMask, "")
	}
	out := make(map[string]any, len(in))
	for _, key := range slices.Sorted(maps.Keys(in)) {
		// The name of a member is text that leaves, too. The pointer shows the
		// guarded name, or it would tell the value.
		shown, rules := clean(key)
		for n := 2; ; n++ {
			if _, taken := out[shown]; !taken && (shown == key || !has(in, shown)) {
				break
			}
			shown = Marker + strconv.Itoa(n)
		}
		at := path + "/" + escape(shown)
		for _, r := range rules {
			w.report(r, at)
		}
		rest, here := below(masks, key)
		out[shown] = w.value(in[key], at, rest, here, key)
	}
	return out
}

func has(m map[string]any, key string) bool { _, ok := m[key]; return ok }

// value guards one member, whose name is key; masked says that policy hides it.
func (w *walk) value(v any, path string, masks [][]string, masked bool, key string) any {
	if masked {
		w.report(RuleMask, path)
		return Marker
	}
	switch v := v.(type) {
	case string:
		if secretName(key) && v != "" && v != Marker {
			w.report(RuleSecretField, path)
			return Marker
		}
		text, rules := clean(v)
		for _, r := range rules {
			w.report(r, path)
		}
		return text
	case json.Number:
		if secretName(key) {
			w.report(RuleSecretField, path)
			return Marker
		}
		return v
	case map[string]any:
		return w.object(v, path, masks)
	case []any:
		out := make([]any, len(v))
		for i, one := range v {
			n := strconv.Itoa(i)
			rest, here := below(masks, n)
			out[i] = w.value(one, path+"/"+n, rest, here, key)
		}
		return out
	}
	return v
}

func escape(part string) string {
	return strings.ReplaceAll(strings.ReplaceAll(part, "~", "~0"), "/", "~1")
}

// clean applies every rule to one string and names those that cut something.
func clean(s string) (string, []string) {
	var rules []string
	if plain(s) {
		return s, nil
	}
	for _, r := range patterns {
		if out := r.apply(s); out != s {
			s = out
			rules = append(rules, r.name)
		}
	}
	if len(s) > MaxText {
		s = s[:runeStart(s, MaxText-len(Marker))] + Marker
		rules = append(rules, RuleOversize)
	}
	return s, rules
}

// plain says of a short string that no rule can match it: most cells of a table
// are such.
func plain(s string) bool {
	const shortest = 20 // of a secret without punctuation
	return len(s) < shortest && !strings.ContainsAny(s, `/\:=._-`) && !strings.Contains(s, "localhost")
}

// runeStart is the last boundary of characters at or before n.
func runeStart(s string, n int) int {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return n
}
