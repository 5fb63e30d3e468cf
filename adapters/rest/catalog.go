package rest

import (
	"encoding/json"
	"net/http"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// intentRow is an intent as those who may ask for it see it.
type intentRow struct {
	Intent         string          `json:"intent"`
	Title          string          `json:"title"`
	Description    string          `json:"description"`
	RiskLevel      string          `json:"risk_level"`
	Command        *string         `json:"command"`
	InputSchema    json.RawMessage `json:"input_schema"`
	Responsibility *responsibility `json:"responsibility"`
}

func (s *surface) intents(c *httpkit.Call) error {
	all, err := s.o.Service.Intents(c.Context(), c.Request)
	if err != nil {
		return err
	}
	lang := c.Lang()
	return c.JSON(http.StatusOK, listOf(all, "", func(in anuencia.Intent) intentRow {
		row := intentRow{
			Intent: in.Name, Title: textIn(in.Title, lang, in.Name), Description: textIn(in.Description, lang, ""),
			RiskLevel: string(in.Risk), Command: optional(in.Command), InputSchema: orNull(in.InputSchema),
		}
		if r := in.Responsibility; r.Complete() {
			row.Responsibility = &responsibility{OwnerUnit: r.OwnerUnit, Supervisor: r.Supervisor, Appeals: r.Appeals, LegalBasis: r.LegalBasis}
		}
		return row
	}))
}

func (s *surface) messages(c *httpkit.Call) error {
	return c.JSON(http.StatusOK, s.o.Words(c.Lang()))
}
