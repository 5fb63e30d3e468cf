package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/display"
)

// Messages gives the catalog's words (internal/catalog). Nothing is put into
// them.
type Messages interface {
	Message(lang string, code anuencia.Code, reason anuencia.Reason) string
	WarningMessage(lang, code string) string
}

// Voice is how a caller is spoken to.
type Voice struct {
	Messages Messages
	Lang     string
	Brief    bool // details are withheld (external channel, or an actor who is not institutional)
}

// Rendering is an answer ready to be written.
type Rendering struct {
	Status     int    // HTTP
	Body       []byte // JSON, nil for none
	RetryAfter time.Duration
	Code       anuencia.Code // of a standard error, "" for a result
}

// Retry-After of answers that name no time of their own.
const (
	retryUnavailable = 5 * time.Second
	retryRunning     = time.Second
	retryWaiting     = 10 * time.Second
)

// The shapes. The order of the fields is the order on the wire.
type (
	resultBody struct {
		ExecutionID string          `json:"execution_id"`
		Status      string          `json:"status"`
		Result      json.RawMessage `json:"result"`
		Sources     []SourceBody    `json:"sources"`
		Warnings    []WarningBody   `json:"warnings"`
		AuditRef    string          `json:"audit_ref"`
		ApprovalID  string          `json:"approval_id,omitempty"`
	}
	errorBody struct {
		ExecutionID string     `json:"execution_id"`
		Status      string     `json:"status"`
		Error       errorInner `json:"error"`
	}
	errorInner struct {
		Code    string      `json:"code"`
		Message string      `json:"message"`
		Details DetailsBody `json:"details"`
	}
)

// SourceBody is a source on the wire.
type SourceBody struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Ref  string `json:"ref"`
	Hash string `json:"hash,omitempty"`
}

// WarningBody is a warning on the wire.
type WarningBody struct {
	Code     string `json:"code"`
	Message  string `json:"message"`
	Severity string `json:"severity"`
}

// DetailsBody is error.details on the wire: these keys and no other.
type DetailsBody struct {
	RiskLevel    string      `json:"risk_level,omitempty"`
	PolicyID     string      `json:"policy_id,omitempty"`
	NextAction   string      `json:"next_action,omitempty"`
	Reason       string      `json:"reason,omitempty"`
	Fields       []FieldBody `json:"fields,omitempty"`
	RetryAfterMS int64       `json:"retry_after_ms,omitempty"`
	Limit        int64       `json:"limit,omitempty"`
	Window       string      `json:"window,omitempty"`
	MaxBytes     int64       `json:"max_bytes,omitempty"`
	Supported    []string    `json:"supported,omitempty"`
}

// FieldBody names what is wrong, never the value.
type FieldBody struct {
	Path string `json:"path"`
	Rule string `json:"rule"`
}

// Encode is the JSON of every answer: UTF-8, no HTML escapes, and characters that
// could deceive who looks at the bytes as \u escapes.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode answer: %w", err)
	}
	return display.JSON(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// FromError renders a request that failed before, or without, an execution of
// its own (id is the request's own). What is no Fault is INTERNAL_ERROR; its
// cause is withheld.
func FromError(id anuencia.ExecutionID, err error, v Voice) Rendering {
	f := anuencia.AsFault(err)
	if f == nil {
		f = anuencia.NewFault(anuencia.CodeInternal, "")
	}
	pair := find(f.Code, f.Reason)
	r := v.standardError(id, f)
	r.Status = pair.Status
	r.RetryAfter = retryAfter(pair, f)
	return r
}

// Details gives error.details of f as this caller may see it.
func (v Voice) Details(f *anuencia.Fault) DetailsBody {
	pair := find(f.Code, f.Reason)
	if v.Brief || pair.Code == anuencia.CodeInternal {
		return DetailsBody{}
	}
	d := f.Details
	out := DetailsBody{
		RiskLevel: string(d.RiskLevel), PolicyID: d.PolicyID, NextAction: d.NextAction, Reason: string(pair.Reason),
		RetryAfterMS: d.RetryAfterMS, Limit: d.Limit, Window: d.Window, MaxBytes: d.MaxBytes, Supported: d.Supported,
	}
	for _, fe := range d.Fields {
		out.Fields = append(out.Fields, FieldBody{Path: fe.Path, Rule: fe.Rule})
	}
	return out
}

// Warnings gives warnings in the caller's words; never nil.
func (v Voice) Warnings(list []anuencia.Warning) []WarningBody {
	out := make([]WarningBody, 0, len(list))
	for _, w := range list {
		severity := w.Severity
		if severity == "" {
			severity = anuencia.SeverityWarning
		}
		out = append(out, WarningBody{Code: w.Code, Message: v.Messages.WarningMessage(v.Lang, w.Code), Severity: string(severity)})
	}
	return out
}

// standardError is the one error shape. Status is left to the caller.
func (v Voice) standardError(id anuencia.ExecutionID, f *anuencia.Fault) Rendering {
	pair := find(f.Code, f.Reason)
	body, err := Encode(errorBody{
		ExecutionID: id.String(), Status: string(anuencia.StateFailed),
		Error: errorInner{
			Code: string(pair.Code), Message: v.Messages.Message(v.Lang, pair.Code, pair.Reason), Details: v.Details(f),
		},
	})
	if err != nil { // strings and numbers only: it cannot fail, and if it did there is still an answer
		return Rendering{Status: http.StatusInternalServerError, Code: anuencia.CodeInternal}
	}
	return Rendering{Body: body, Code: pair.Code}
}

func retryAfter(p Pair, f *anuencia.Fault) time.Duration {
	switch {
	case f.Details.RetryAfterMS > 0 && (p.Status == http.StatusTooManyRequests || p.Status == http.StatusServiceUnavailable):
		return time.Duration(f.Details.RetryAfterMS) * time.Millisecond
	case p.Status == http.StatusTooManyRequests:
		return time.Second
	case p.Status == http.StatusServiceUnavailable:
		return retryUnavailable
	}
	return 0
}
