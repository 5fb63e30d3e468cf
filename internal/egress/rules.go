package egress

import (
	"net/netip"
	"regexp"
	"strings"
)

// rule cuts what its pattern finds: the groups of the pattern, or the whole
// match when it has none.
type rule struct {
	name    string
	hints   []string // a string with none of them cannot match; empty: always tried
	pattern *regexp.Regexp
	only    func(match string) bool // what the pattern cannot say; nil: nothing more
}

// patterns are tried in this order: what contains others comes first. They
// speak of forms, so that Spanish prose, URLs and student codes pass.
//
//nolint:gochecknoglobals // compiled once
var patterns = []rule{
	{
		name: "private_key", hints: []string{"PRIVATE KEY"},
		// One whose end was cut off is hidden to the end of the text.
		pattern: regexp.MustCompile(`(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----|\z)`),
	},
	{
		name: "stack_trace", hints: []string{"goroutine "},
		pattern: regexp.MustCompile(`(?m)(?:^panic: .*\n(?:.*\n)??\s*)?goroutine \d+(?: [a-z]+=\S+)* \[[^\]\n]+\]:(?:\n.+)*`),
	},
	{
		name: "stack_trace", hints: []string{"Traceback ("},
		pattern: regexp.MustCompile(`Traceback \(most recent call last\):(?:\n[ \t]+.*)*(?:\n\S.*)?`),
	},
	{
		name: "stack_trace", hints: []string{" at ", "\tat "},
		pattern: regexp.MustCompile(`(?:[^\n]*\n)?(?:[ \t]+at [^\n(]+(?:\([^)\n]*\)| in [^\n]+:line \d+)[^\n]*(?:\n|\z)|[ \t]*\.\.\. \d+ more(?:\n|\z)|Caused by: [^\n]*\n)*[ \t]+at (?:async )?[\w.$<>/\[\]]+ ?\([^)\n]*\)[^\n]*`),
	},
	{name: "stack_trace", hints: []string{".go:"}, pattern: regexp.MustCompile(`(?m)^\s*\S+\.go:\d+ \+0x[0-9a-f]+`)},
	{name: "anuencia_token", hints: []string{"anu_"}, pattern: regexp.MustCompile(`anu_[A-Za-z0-9_-]{20,}`)},
	{name: "aws_key", hints: []string{"AKIA", "ASIA"}, pattern: regexp.MustCompile(`(?:^|[^A-Za-z0-9])((?:AKIA|ASIA)[A-Z0-9]{16})(?:$|[^A-Za-z0-9])`)},
	{name: "jwt", hints: []string{"eyJ"}, pattern: regexp.MustCompile(`(?:^|[^A-Za-z0-9])(eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}(?:\.[A-Za-z0-9_-]*)*)`)},
	{
		name: "api_token", hints: []string{"gh", "xox", "AIza", "sk-", "sk_", "rk_", "whsec_", "glpat-"},
		pattern: regexp.MustCompile(`(?:^|[^A-Za-z0-9])(gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|` +
			`AIza[A-Za-z0-9_-]{35}|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{20,}|whsec_[A-Za-z0-9+/=]{16,})`),
	},
	{name: "bot_token", hints: []string{":"}, pattern: regexp.MustCompile(`(?:^|[^\pN])(\d{8,10}:[A-Za-z0-9_-]{35})`)},
	{name: "bearer", hints: []string{"earer", "EARER", "asic "}, pattern: regexp.MustCompile(`(?i)\b(?:bearer[ \t]+|authorization:[ \t]*basic[ \t]+)([A-Za-z0-9._~+/=-]{16,})`)},
	{name: "url_credentials", hints: []string{"://"}, pattern: regexp.MustCompile(`(?i)\b[a-z][a-z0-9+.-]*://([^\s/?#@"'<>:]*:[^\s/?#"'<>]*)@`)},
	{
		name: "password", hints: []string{"="},
		pattern: regexp.MustCompile(`(?i)(?:^|[^\pL])(?:[a-z]*password|passwd|pwd|contrase[ñn]a|token|secret|(?:api|access|secret|account|shared)[_-]?(?:access)?[_-]?key|(?:access|refresh|auth|id)[_-]?token|client[_-]?secret)["']?[ \t]*=[ \t]*("[^"]*"|'[^']*'|[^\s;&,"'<>]+)`),
	},
	{
		name: "password", hints: []string{":"},
		pattern: regexp.MustCompile(`(?i)(?:^|[^\pL])(?:password|passwd|pwd|(?:api|access|secret)[_-]?key|(?:access|refresh|auth)[_-]token|client[_-]?secret)["']?[ \t]*:[ \t]*("[^"]*"|'[^']*'|[^\s;&,"'<>]{8,})`),
	},
	{
		name: "internal_path", hints: []string{"/"},
		pattern: regexp.MustCompile(`(?:^|[^\pL\pN_./~%@-])((?:/(?:etc|home|var|root|usr|opt|srv|tmp|proc|sys|mnt|run|boot|dev|Users|private|workspace)|~)/[^\s"'<>|(){}\[\],;]+)`),
	},
	{name: "internal_path", hints: []string{`:\`, `\\`}, pattern: regexp.MustCompile(`(?:^|[^\pL\pN])((?:[A-Za-z]:|\\\\[A-Za-z0-9._-]+)\\[^\s"'<>|*?]+)`)},
	{name: "internal_path", hints: []string{"file:"}, pattern: regexp.MustCompile(`\bfile:/[^\s"'<>]+`)},
	{
		name: "internal_address", hints: []string{"."}, only: privateAddress,
		pattern: regexp.MustCompile(`(?:^|[^\pL\pN.])(\d{1,3}(?:\.\d{1,3}){3})(?:$|[^\pL\pN.]|\.(?:$|[^\pN]))`),
	},
	{
		name: "internal_address", hints: []string{"::", "fe80:", "fc", "fd"}, only: privateAddress,
		pattern: regexp.MustCompile(`(?:^|[^\pL\pN:.])([0-9a-fA-F]{0,4}(?::[0-9a-fA-F]{0,4}){2,7})(?:$|[^\pL\pN:])`),
	},
	{
		name: "internal_address", hints: []string{"localhost", ".internal", ".localdomain", ".local"},
		pattern: regexp.MustCompile(`(?:^|[^\pL\pN.@-])(localhost|(?:[a-z0-9-]+\.)+(?:internal|localdomain|cluster\.local))(?:$|[^\pL\pN.-]|\.(?:$|\s))`),
	},
}

// apply cuts every match. The patterns look at a character on both sides, so
// two matches with one character between them need a second look.
func (r rule) apply(s string) string {
	if !r.hinted(s) {
		return s
	}
	for {
		out := r.once(s)
		if out == s {
			return s
		}
		s = out
	}
}

func (r rule) hinted(s string) bool {
	for _, h := range r.hints {
		if strings.Contains(s, h) {
			return true
		}
	}
	return len(r.hints) == 0
}

func (r rule) once(s string) string {
	found := r.pattern.FindAllStringSubmatchIndex(s, -1)
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for _, m := range found {
		from, to := m[0], m[1]
		if len(m) > 2 {
			from, to = m[2], m[3]
		}
		match := s[from:to]
		// What stands for a cut is no match: guarding twice changes nothing.
		if match == "" || strings.Contains(match, Marker) && len(match) <= len(Marker)+2 || r.only != nil && !r.only(match) {
			continue
		}
		b.WriteString(s[at:from])
		b.WriteString(Marker)
		at = to
	}
	b.WriteString(s[at:])
	return b.String()
}

// privateAddress says whether s is an address that means something only inside.
func privateAddress(s string) bool {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return false
	}
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || carrierShared(a)
}

func carrierShared(a netip.Addr) bool {
	shared := netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, 0, 0}), 10) // RFC 6598
	return shared.Contains(a)
}

// secretName says whether a member's name alone says that its value is a
// secret.
func secretName(key string) bool {
	switch strings.NewReplacer("_", "", "-", "", "ñ", "n", "Ñ", "n").Replace(strings.ToLower(key)) {
	case "password", "passwd", "pwd", "contrasena", "secret", "clientsecret", "apikey", "apitoken", "privatekey",
		"accesstoken", "refreshtoken", "authtoken", "authorization", "secretkey", "accesskey", "connectionstring":
		return true
	}
	return false
}
