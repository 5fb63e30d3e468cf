package rest

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// submission is the body of POST /executions.
type submission struct {
	Intent   string          `json:"intent" validate:"required,max=200"`
	Input    json.RawMessage `json:"input" validate:"required"`
	Actor    *actorRef       `json:"actor"`
	Channel  string          `json:"channel" validate:"omitempty,oneof=ui api n8n telegram uhp mcp"`
	Metadata json.RawMessage `json:"metadata"`
}

type actorRef struct {
	ExternalID string `json:"external_id" validate:"required,max=200"`
}

const maxKey = 255

func (s *surface) submit(c *httpkit.Call) error {
	var body submission
	if err := c.Decode(&body); err != nil {
		return err
	}
	if body.Actor != nil {
		if err := c.NameActor(body.Actor.ExternalID); err != nil {
			return err
		}
	}
	if body.Channel != "" {
		c.Request.Channel = anuencia.Channel(body.Channel)
	}
	sub := harness.Submission{Intent: body.Intent, Input: body.Input, Route: "POST /api/v1/executions"}
	if len(body.Metadata) > 0 && string(body.Metadata) != "null" {
		if body.Metadata[0] != '{' {
			return anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "/metadata", Rule: "type"})
		}
		sub.Metadata = body.Metadata
	}
	key, err := c.Header("Idempotency-Key", maxKey)
	if err != nil {
		return err
	}
	if key != "" {
		sub.Keys = []string{key}
	}
	a, err := s.o.Service.Submit(c.Context(), c.Request, sub)
	if err != nil {
		return err
	}
	return c.Answer(a)
}

func (s *surface) read(c *httpkit.Call) error {
	v, err := id[anuencia.ExecutionID](c, "id")
	if err != nil {
		return err
	}
	a, err := s.o.Service.Read(c.Context(), c.Request, v)
	if err != nil {
		return err
	}
	return c.Answer(a)
}

func (s *surface) cancel(c *httpkit.Call) error {
	v, err := id[anuencia.ExecutionID](c, "id")
	if err != nil {
		return err
	}
	a, err := s.o.Service.Cancel(c.Context(), c.Request, v)
	if err != nil {
		return err
	}
	return c.Answer(a)
}

// executionRow is an execution in a list and in a reconstruction.
type executionRow struct {
	ExecutionID    string     `json:"execution_id"`
	ShortCode      string     `json:"short_code"`
	State          string     `json:"state"`
	Intent         string     `json:"intent"`
	Agent          string     `json:"agent"`
	Channel        string     `json:"channel"`
	RiskLevel      *string    `json:"risk_level"`
	ActorID        string     `json:"actor_id"`
	ActorName      string     `json:"actor_name"`
	Subject        *string    `json:"subject"`
	ApprovalID     *string    `json:"approval_id"`
	ErrorCode      *string    `json:"error_code"`
	Reason         *string    `json:"reason"`
	PolicyRevision string     `json:"policy_revision"`
	AuditRef       string     `json:"audit_ref"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
	FinishedAt     *time.Time `json:"finished_at"`
}

func rowOf(e anuencia.Execution) executionRow {
	r := executionRow{
		ExecutionID: e.ID.String(), ShortCode: e.ShortCode, State: string(e.State), Intent: e.Intent, Agent: e.Agent, Channel: string(e.Channel),
		RiskLevel: optional(string(e.Risk)), ActorID: e.Actor.ID.String(), ActorName: e.Actor.DisplayName,
		Subject: optional(e.SubjectRef), ApprovalID: optionalID(e.ApprovalID), PolicyRevision: e.PolicyRevision,
		AuditRef: e.AuditRef.String(), CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, FinishedAt: optionalTime(e.FinishedAt),
	}
	if f := e.Outcome.Fault; f != nil {
		r.ErrorCode, r.Reason = optional(string(f.Code)), optional(string(f.Reason))
	}
	return r
}

func (s *surface) list(c *httpkit.Call) error {
	q := c.Query()
	f := harness.ExecutionFilter{
		Page: q.Page(), Actor: httpkit.ID[anuencia.PersonID](q, "actor"), State: httpkit.Enum[anuencia.State](q, "state"), Intent: q.Text("intent"),
		Subject: q.Text("subject"), Channel: httpkit.Enum[anuencia.Channel](q, "channel"), Risk: httpkit.Enum[anuencia.Risk](q, "risk"),
		Code: httpkit.Enum[anuencia.Code](q, "code"), From: q.Time("from"), To: q.Time("to"),
	}
	if err := q.Err(); err != nil {
		return err
	}
	items, next, err := s.o.Service.List(c.Context(), c.Request, f)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(items, next, rowOf))
}

func (s *surface) events(c *httpkit.Call) error {
	v, err := id[anuencia.ExecutionID](c, "id")
	if err != nil {
		return err
	}
	row := safeEventOf
	if c.Request.Principal.Has(anuencia.ScopeAudit) {
		row = eventOf
	}
	if c.WantsStream() {
		return s.follow(c, v, row)
	}
	events, err := s.o.Service.Events(c.Context(), c.Request, v)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(events, "", row))
}

// keepAlive is the longest silence of a stream.
const keepAlive = 15 * time.Second

// follow sends the events live, from after Last-Event-ID, until the execution
// has ended.
func (s *surface) follow(c *httpkit.Call, v anuencia.ExecutionID, row func(anuencia.SealedEvent) eventRow) error {
	after, err := c.LastEventID()
	if err != nil {
		return err
	}
	stream := c.Stream()
	err = s.o.Service.Follow(c.Context(), c.Request, v, after, keepAlive, func(events []anuencia.SealedEvent) error {
		if len(events) == 0 {
			return stream.Comment()
		}
		for _, e := range events {
			if err := stream.Event(e.Seq, string(e.Type), row(e)); err != nil {
				return err
			}
		}
		return nil
	})
	if stream.Started() {
		return nil // the reader left, or reads again from the last id it has
	}
	return err
}

// artifactRow is a file of an execution.
type artifactRow struct {
	ArtifactID string    `json:"artifact_id"`
	Filename   string    `json:"filename"`
	MediaType  string    `json:"media_type"`
	SHA256     string    `json:"sha256"`
	CreatedAt  time.Time `json:"created_at"`
}

func (s *surface) artifacts(c *httpkit.Call) error {
	v, err := id[anuencia.ExecutionID](c, "id")
	if err != nil {
		return err
	}
	files, err := s.o.Service.Artifacts(c.Context(), c.Request, v)
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, listOf(files, "", func(a anuencia.Artifact) artifactRow {
		return artifactRow{ArtifactID: a.ID.String(), Filename: a.Filename, MediaType: a.MediaType, SHA256: hexOf(a.SHA256), CreatedAt: a.CreatedAt}
	}))
}

func (s *surface) artifact(c *httpkit.Call) error {
	v, err := id[anuencia.ExecutionID](c, "id")
	if err != nil {
		return err
	}
	name, err := filename(c.Param("filename"))
	if err != nil {
		return err
	}
	a, err := s.o.Service.Artifact(c.Context(), c.Request, v, name)
	if err != nil {
		return err
	}
	return c.Bytes(http.StatusOK, mediaType(a.MediaType), a.Content, map[string]string{
		"Content-Disposition": disposition(a.Filename),
		"ETag":                strconv.Quote(hexOf(a.SHA256)),
		// What an execution made is never run in the origin of the API.
		"Content-Security-Policy": "default-src 'none'; sandbox",
	})
}

// filename decodes a file name of a path. What no file can be called does not
// exist; PostgreSQL takes neither NUL nor broken UTF-8.
func filename(escaped string) (string, error) {
	name, err := url.PathUnescape(escaped)
	if err != nil || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", anuencia.NotFound()
	}
	return name, nil
}

// disposition makes a browser keep the file instead of showing it.
func disposition(name string) string {
	if v := mime.FormatMediaType("attachment", map[string]string{"filename": name}); v != "" {
		return v
	}
	return "attachment"
}

func mediaType(stored string) string {
	if _, _, err := mime.ParseMediaType(stored); err != nil {
		return "application/octet-stream"
	}
	return stored
}
