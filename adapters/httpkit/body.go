package httpkit

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-playground/validator/v10"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

const (
	drainMost = 128 << 20 // bytes read and thrown away before a 413
	drainTime = 10 * time.Second
)

// body reads a JSON body within the limits.
func (c *Call) body() ([]byte, error) {
	r := c.gin.Request
	if !isJSON(r.Header) {
		return nil, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMediaType).
			WithDetails(anuencia.Details{Supported: []string{"application/json"}})
	}
	most := c.kit.o.MaxBody
	tooLarge := anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonTooLarge).WithDetails(anuencia.Details{MaxBytes: most})
	if r.ContentLength > most && r.Header.Get("Expect") != "" {
		return nil, tooLarge // the sender asked first, and sends nothing when told so
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil {
		return nil, anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMalformed).WithCause(err)
	}
	if int64(len(raw)) > most {
		c.drain(r.Body)
		return nil, tooLarge
	}
	return raw, nil
}

// isJSON: one media type, not compressed. Another charset than UTF-8 is no JSON.
func isJSON(h http.Header) bool {
	values := h.Values("Content-Type")
	encoding := h.Get("Content-Encoding")
	if len(values) != 1 || (encoding != "" && !strings.EqualFold(encoding, "identity")) {
		return false
	}
	t, params, err := mime.ParseMediaType(values[0])
	charset := params["charset"]
	return err == nil && t == "application/json" && (charset == "" || strings.EqualFold(charset, "utf-8"))
}

// drain reads on, so that a sender that is still sending reads the answer.
func (c *Call) drain(body io.Reader) {
	c.gin.Header("Connection", "close")
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
// for unknown members, wrong types and what the tags say. Member names are
// compared exactly: encoding/json would take "Intent" for "intent".
func (c *Call) Decode(v any) error {
	raw, err := c.body()
	if err != nil {
		return err
	}
	if _, err := audit.Canonical(raw); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v, json.RejectUnknownMembers(true)); err != nil {
		return anuencia.Invalid(anuencia.ReasonSchema, decodeField(err)).WithCause(err)
	}
	return validate(v)
}

// longestPath bounds a path that is made of a caller's own names.
const longestPath = 200

func decodeField(err error) anuencia.FieldError {
	f := anuencia.FieldError{Rule: "type"}
	wrong := new(json.SemanticError)
	if !errors.As(err, &wrong) {
		return f
	}
	if p := string(wrong.JSONPointer); len(p) <= longestPath {
		f.Path = p
	}
	if errors.Is(wrong, json.ErrUnknownName) {
		f.Rule = "unknown"
	}
	return f
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
