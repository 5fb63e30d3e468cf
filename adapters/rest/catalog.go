package rest

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
)

type intentBody struct {
	Name           string              `json:"name"`
	Title          string              `json:"title"`
	Description    string              `json:"description"`
	RiskLevel      string              `json:"risk_level"`
	Subject        *string             `json:"subject"`
	Command        *string             `json:"command"`
	TimeoutMS      int64               `json:"timeout_ms"`
	InputSchema    json.RawMessage     `json:"input_schema"`
	Responsibility *responsibilityBody `json:"responsibility"`
}

type responsibilityBody struct {
	OwnerUnit  string `json:"owner_unit"`
	Supervisor string `json:"supervisor"`
	Appeals    string `json:"appeals"`
	LegalBasis string `json:"legal_basis"`
}

type messagesBody struct {
	Language string                 `json:"language"`
	Errors   map[string]messageBody `json:"errors"`
	Texts    map[string]string      `json:"texts"`
}

type messageBody struct {
	Message string            `json:"message"`
	Reasons map[string]string `json:"reasons"`
}

// intents is GET /catalog/intents: what this actor may ask for.
func (a *api) intents(ctx context.Context, c *httpkit.Call) error {
	list, err := a.o.Service.Intents(ctx, request(c))
	if err != nil {
		return err //nolint:wrapcheck // a fault of the use cases
	}
	return writeList(c, list, "", func(in anuencia.Intent) intentBody {
		return intentBody{
			Name: in.Name, Title: a.inLanguage(c, in.Title), Description: a.inLanguage(c, in.Description),
			RiskLevel: string(in.Risk), Subject: orNull(in.Subject), Command: orNull(in.Command), TimeoutMS: in.Timeout.Milliseconds(),
			InputSchema: contract.Object(string(in.InputSchema)), Responsibility: responsibilityOf(&in),
		}
	})
}

// responsibilityOf gives the register of an intent (governance section 10), nil
// for none.
func responsibilityOf(in *anuencia.Intent) *responsibilityBody {
	if in == nil || in.Responsibility == (anuencia.Responsibility{}) {
		return nil
	}
	r := in.Responsibility
	return &responsibilityBody{OwnerUnit: r.OwnerUnit, Supervisor: r.Supervisor, Appeals: r.Appeals, LegalBasis: r.LegalBasis}
}

// inLanguage gives words in the caller's language, or in the default one.
func (a *api) inLanguage(c *httpkit.Call, t anuencia.Text) string {
	if s := t[c.Lang]; s != "" {
		return s
	}
	return t[a.o.Kit.Languages()[0]]
}

// messages is GET /catalog/messages: the words, in the caller's language.
func (a *api) messages(_ context.Context, c *httpkit.Call) error {
	w := a.o.Words()
	b := messagesBody{Language: c.Lang, Errors: map[string]messageBody{}, Texts: map[string]string{}}
	for _, p := range contract.Pairs() {
		m, known := b.Errors[string(p.Code)]
		if !known {
			m = messageBody{Message: w.Message(c.Lang, p.Code, ""), Reasons: map[string]string{}}
			b.Errors[string(p.Code)] = m
		}
		if p.Reason != "" {
			m.Reasons[string(p.Reason)] = w.Message(c.Lang, p.Code, p.Reason)
		}
	}
	for _, key := range w.Texts() {
		b.Texts[key] = w.Text(c.Lang, key)
	}
	return c.JSON(http.StatusOK, b)
}
