package httpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/go-playground/validator/v10"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Call is one request on its way through a handler; *gin.Context goes no
// further.
type Call struct {
	kit       *Kit
	gin       *gin.Context
	Request   harness.Request
	operation string
	failed    anuencia.Code // the code of the standard error that was sent, "" for none
}

// Context is the request's; it ends when the caller leaves.
func (c *Call) Context() context.Context { return c.gin.Request.Context() }

// Param is a part of the path, as it was sent.
func (c *Call) Param(name string) string { return c.gin.Param(name) }

// Header is a header of the request.
func (c *Call) Header(name string) string { return c.gin.GetHeader(name) }

// Lang is the language of the answer, by Accept-Language.
func (c *Call) Lang() string { return c.kit.o.Languages.Choose(c.gin.GetHeader("Accept-Language")) }

// Words are the texts of the catalog in force.
func (c *Call) Words() Words { return c.kit.o.Words() }

// Decides marks the call as an attempt to decide, for the record of a refusal.
func (c *Call) Decides() { c.operation = harness.OperationDecide }

// about is what an auditor is told of a refused request; no body, no query and
// no header is among it.
func (c *Call) about() map[string]any {
	route := c.gin.FullPath()
	if route == "" {
		route = "unknown"
	}
	a := map[string]any{"method": c.gin.Request.Method, "route": route}
	if c.operation != "" {
		a["operation"] = c.operation
	}
	return a
}

// authenticate finds the principal. There is exactly one Authorization header,
// of scheme Bearer.
func (c *Call) authenticate() error {
	h := c.gin.Request.Header.Values("Authorization")
	scheme, secret := "", ""
	if len(h) == 1 {
		scheme, secret, _ = strings.Cut(h[0], " ")
	}
	if !strings.EqualFold(scheme, "Bearer") {
		secret = ""
	}
	p, err := c.kit.o.UseCases.Authenticate(c.Context(), strings.TrimSpace(secret))
	if err != nil {
		return err
	}
	c.Request.Principal = p
	if c.Request.Channel == "" {
		c.Request.Channel = p.DefaultChannel()
	}
	c.Request.ActFor = c.gin.GetHeader("Anuencia-Actor")
	if len(c.Request.ActFor) > maxExternalID {
		return anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "Anuencia-Actor", Rule: "max"})
	}
	return c.readWait()
}

const maxExternalID = 200

// readWait reads Prefer: wait=N, seconds from 0 to 60; what is no such
// preference is ignored, as RFC 7240 section 2 asks.
func (c *Call) readWait() error {
	for _, h := range c.gin.Request.Header.Values("Prefer") {
		for part := range strings.SplitSeq(h, ",") {
			v, ok := strings.CutPrefix(strings.TrimSpace(part), "wait=")
			if !ok {
				continue
			}
			n, err := strconv.Atoi(strings.Trim(v, `"`))
			if err != nil || n < 0 {
				continue
			}
			c.Request.Wait = time.Duration(min(n, maxWait)) * time.Second
			return nil
		}
	}
	return nil
}

// NameActor takes the actor of a body; one that differs from the header's is
// VALIDATION_FAILED/actor_mismatch.
func (c *Call) NameActor(externalID string) error {
	if externalID == "" {
		return nil
	}
	if c.Request.ActFor != "" && c.Request.ActFor != externalID {
		return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonActorMismatch)
	}
	c.Request.ActFor = externalID
	return nil
}

const (
	drainMost = 128 << 20 // bytes read and thrown away before a 413
	drainTime = 10 * time.Second
)

// body reads a JSON body within the limits.
func (c *Call) body() ([]byte, error) {
	r := c.gin.Request
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMediaType).
			WithDetails(anuencia.Details{Supported: []string{"application/json"}})
	}
	most := c.kit.o.MaxBody
	raw, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil {
		return nil, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMalformed).WithCause(err)
	}
	if int64(len(raw)) > most {
		c.drain(r.Body)
		return nil, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonTooLarge).WithDetails(anuencia.Details{MaxBytes: most})
	}
	return raw, nil
}

// drain reads on, so that a sender that is still sending reads the answer.
func (c *Call) drain(body io.Reader) {
	deadline := c.kit.o.Now().Add(drainTime)
	if err := http.NewResponseController(c.gin.Writer).SetReadDeadline(deadline); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return
	}
	if _, err := io.Copy(io.Discard, io.LimitReader(body, drainMost)); err != nil {
		c.kit.o.Log.DebugContext(c.Context(), "rest of a body that is too large", slog.Any("error", err))
	}
}

// Decode reads the body into v, a pointer to a struct with json and validate
// tags. VALIDATION_FAILED: 415, 413, 400 for what is no JSON, 422 with fields
// for unknown members, wrong types and what the tags say.
func (c *Call) Decode(v any) error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	if _, err := audit.Canonical(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return anuencia.Invalid(anuencia.ReasonSchema, decodeField(err)).WithCause(err)
	}
	return validate(v)
}

const maxShownName = 64

func decodeField(err error) anuencia.FieldError {
	wrong := new(json.UnmarshalTypeError)
	if errors.As(err, &wrong) {
		path := ""
		if wrong.Field != "" {
			path = "/" + strings.ReplaceAll(wrong.Field, ".", "/")
		}
		return anuencia.FieldError{Path: path, Rule: "type"}
	}
	if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		if unquoted, uerr := strconv.Unquote(name); uerr == nil && len(unquoted) <= maxShownName {
			return anuencia.FieldError{Path: "/" + unquoted, Rule: "unknown"}
		}
		return anuencia.FieldError{Path: "", Rule: "unknown"}
	}
	return anuencia.FieldError{Path: "", Rule: "type"}
}

// newValidator names fields as JSON does.
func newValidator() *validator.Validate {
	v := validator.New(validator.WithRequiredStructEnabled())
	v.RegisterTagNameFunc(func(f reflect.StructField) string {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return name
	})
	return v
}

// validators caches what it learned of each struct; it is safe for concurrent
// use and has no other state.
var validators = newValidator() //nolint:gochecknoglobals // see above

func validate(v any) error {
	err := validators.Struct(v)
	var bad validator.ValidationErrors
	if !errors.As(err, &bad) {
		if err != nil {
			return anuencia.Internal("validate", err)
		}
		return nil
	}
	fields := make([]anuencia.FieldError, len(bad))
	for i, b := range bad {
		_, path, _ := strings.Cut(b.Namespace(), ".")
		path = strings.NewReplacer(".", "/", "[", "/", "]", "").Replace(path)
		fields[i] = anuencia.FieldError{Path: "/" + path, Rule: b.Tag()}
	}
	return anuencia.Invalid(anuencia.ReasonSchema, fields...)
}

// voice is how this caller is spoken to.
func (c *Call) voice(brief bool) contract.Voice {
	return contract.Voice{Messages: c.Words(), Lang: c.Lang(), Brief: brief}
}

// write sends a contract, or a status alone when it has no body.
func (c *Call) write(r contract.Rendering) {
	c.failed = r.Code
	if r.RetryAfter > 0 {
		c.gin.Header("Retry-After", strconv.FormatInt(int64((r.RetryAfter+time.Second-1)/time.Second), 10))
	}
	if r.Body == nil {
		c.gin.Status(r.Status)
		c.gin.Writer.WriteHeaderNow()
		return
	}
	c.gin.Data(r.Status, jsonType, r.Body)
}

const jsonType = "application/json; charset=utf-8"

func (c *Call) send(status int, body any) {
	raw, err := contract.Encode(body)
	if err != nil {
		c.kit.o.Log.ErrorContext(c.Context(), "encode an answer", slog.Any("error", err))
		c.gin.Status(http.StatusInternalServerError)
		return
	}
	c.gin.Data(status, jsonType, raw)
}

// JSON sends an answer that is no contract.
func (c *Call) JSON(status int, body any) error {
	c.send(status, body)
	return nil
}

// Bytes sends raw content with headers of its own.
func (c *Call) Bytes(status int, mediaType string, content []byte, headers map[string]string) error {
	for k, v := range headers {
		c.gin.Header(k, v)
	}
	c.gin.Data(status, mediaType, content)
	return nil
}

// Serve lets a plain HTTP handler answer.
func (c *Call) Serve(h http.Handler) error {
	h.ServeHTTP(c.gin.Writer, c.gin.Request)
	return nil
}

// NoContent sends a status without a body.
func (c *Call) NoContent(status int) error {
	c.gin.Status(status)
	c.gin.Writer.WriteHeaderNow()
	return nil
}

// Answer sends the contract of an execution; an unfinished one answers 202
// without a body, with its Location.
func (c *Call) Answer(a harness.Answer) error {
	if a.Unfinished {
		c.gin.Header("Location", "/api/v1/executions/"+a.Execution.ID.String())
	}
	c.write(contract.FromAnswer(contract.Answer{
		Execution: a.Execution, Ran: a.Ran, Submitted: a.Submitted, Unfinished: a.Unfinished, HideResult: a.HideResult,
	}, c.voice(a.Brief)))
	return nil
}

// Operates says whether the caller sent a credential of an operator, on a route
// that asks for none.
func (c *Call) Operates() bool {
	return len(c.gin.Request.Header.Values("Authorization")) == 1 && c.authenticate() == nil && c.Request.Principal.Has(anuencia.ScopeOperate)
}
