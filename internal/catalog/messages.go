package catalog

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// words are the texts of one language.
type words struct {
	errors   map[anuencia.Code]message
	warnings map[string]string
	texts    map[string]string
}

type message struct {
	Message string
	Reasons map[anuencia.Reason]string
}

// Reasons lists, for each code, the reasons that have words of their own. The
// set is closed: the catalog must have exactly these.
func Reasons() map[anuencia.Code][]anuencia.Reason {
	return map[anuencia.Code][]anuencia.Reason{
		anuencia.CodePolicyDenied:     nil,
		anuencia.CodeToolNotAllowed:   nil,
		anuencia.CodeRateLimited:      nil,
		anuencia.CodeIdentityNotFound: {anuencia.ReasonCredential, anuencia.ReasonActor},
		anuencia.CodeValidation: {
			anuencia.ReasonMalformed, anuencia.ReasonSchema, anuencia.ReasonNotFound, anuencia.ReasonMethod,
			anuencia.ReasonMediaType, anuencia.ReasonTooLarge, anuencia.ReasonKeyReused, anuencia.ReasonUnknownIntent,
			anuencia.ReasonActorMismatch, anuencia.ReasonDecided, anuencia.ReasonExpired, anuencia.ReasonWithdrawn,
			anuencia.ReasonSuperseded, anuencia.ReasonSubjectMismatch, anuencia.ReasonReasonRequired,
		},
		anuencia.CodeInternal:         {anuencia.ReasonUnavailable, anuencia.ReasonOutcomeUnknown},
		anuencia.CodeApprovalRejected: {anuencia.ReasonRejected, anuencia.ReasonWithdrawn},
		anuencia.CodeTimeout: {
			anuencia.ReasonTool, anuencia.ReasonModel, anuencia.ReasonExecution, anuencia.ReasonBudget,
			anuencia.ReasonApprovalExpired, anuencia.ReasonCancelled,
		},
	}
}

// requiredTexts are the keys that the product itself reads.
func requiredTexts() []string {
	return []string{
		"state.waiting_approval", "state.approved", "state.running", "state.completed", "state.failed", "state.incomplete",
		"state.cancelled", "approval_status.pending", "approval_status.approved", "approval_status.rejected",
		"approval_status.expired", "approval_status.withdrawn", "approval_status.superseded",
		"risk.low", "risk.medium", "risk.high", "risk.critical",
		"channel.ui", "channel.api", "channel.n8n", "channel.telegram", "channel.uhp", "channel.mcp", "channel.cli",
		"verdict.approve", "verdict.reject",
		"rule." + anuencia.PolicyScope, "rule." + anuencia.PolicyFourEyes, "rule." + anuencia.PolicyNoApprover,
		"rule." + anuencia.PolicyApproverRole, "rule." + anuencia.PolicyOwnCredential, "rule." + anuencia.PolicyChannel,
		"rule." + anuencia.PolicyEngine, "rule." + anuencia.PolicyActFor, "rule." + anuencia.PolicyIntentRole,
	}
}

func (l *loader) messages(fsys fs.FS) error {
	if _, err := fs.Stat(fsys, "messages"); err != nil {
		if l.o.Messages == nil {
			return fmt.Errorf("find messages: %w", err)
		}
		fsys = l.o.Messages
	}
	for _, lang := range Languages() {
		name := "messages/" + lang + ".yaml"
		var f messagesFile
		if !l.decode(fsys, name, &f) {
			continue
		}
		if f.Language != lang {
			l.problem(name, "language must be %q", lang)
		}
		l.c.words[lang] = l.wordsFrom(name, f)
	}
	l.checkLanguagesAgree()
	return nil
}

func (l *loader) wordsFrom(name string, f messagesFile) words {
	w := words{errors: map[anuencia.Code]message{}, warnings: f.Warnings, texts: map[string]string{}}
	for code := range f.Errors {
		if !anuencia.Code(code).Valid() {
			l.problem(name, "unknown code %s", code)
		}
	}
	for _, code := range anuencia.Codes() {
		w.errors[code] = l.messageFrom(name, code, f.Errors[string(code)])
	}
	for _, code := range sortedKeys(f.Warnings) {
		l.plain(name, "warning "+code, f.Warnings[code])
	}
	l.flatten(name, "", f.Texts, w.texts)
	for _, key := range requiredTexts() {
		if w.texts[key] == "" {
			l.problem(name, "text %s is missing", key)
		}
	}
	return w
}

func (l *loader) messageFrom(name string, code anuencia.Code, f errorFile) message {
	m := message{Message: f.Message, Reasons: map[anuencia.Reason]string{}}
	l.plain(name, string(code), f.Message)
	want := Reasons()[code]
	for _, r := range sortedKeys(f.Reasons) {
		if !slices.Contains(want, anuencia.Reason(r)) {
			l.problem(name, "unknown reason %s of %s", r, code)
		}
		m.Reasons[anuencia.Reason(r)] = f.Reasons[r]
	}
	for _, r := range want {
		l.plain(name, string(code)+"."+string(r), m.Reasons[r])
	}
	return m
}

// plain: words are there, and have no place to put a value in (contracts
// section 1).
func (l *loader) plain(name, what, text string) {
	if strings.TrimSpace(text) == "" {
		l.problem(name, "%s has no words", what)
	}
	if strings.ContainsAny(text, "{}%$\n") {
		l.problem(name, "%s must be plain words in one line", what)
	}
}

func (l *loader) flatten(name, prefix string, from map[string]any, into map[string]string) {
	for _, key := range sortedKeys(from) {
		switch v := from[key].(type) {
		case string:
			l.plain(name, prefix+key, v)
			into[prefix+key] = v
		case map[string]any:
			l.flatten(name, prefix+key+".", v, into)
		default:
			l.problem(name, "%s is neither words nor a section", prefix+key)
		}
	}
}

// checkLanguagesAgree: what can be said in one language can be said in all.
func (l *loader) checkLanguagesAgree() {
	for _, a := range Languages() {
		for _, b := range Languages() {
			for _, key := range sortedKeys(l.c.words[a].warnings) {
				if _, ok := l.c.words[b].warnings[key]; !ok {
					l.problem("messages/"+b+".yaml", "warning %s is missing", key)
				}
			}
			for _, key := range sortedKeys(l.c.words[a].texts) {
				if _, ok := l.c.words[b].texts[key]; !ok {
					l.problem("messages/"+b+".yaml", "text %s is missing", key)
				}
			}
		}
	}
}
