package httpkit

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/gin-gonic/gin"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// Call is one request on its way through a handler; *gin.Context goes no
// further. It belongs to its request's goroutine.
type Call struct {
	kit     *Kit
	gin     *gin.Context
	Request harness.Request
	decides bool
	ref     string // what a decision speaks of
}

// Context is the request's; it ends when the caller leaves.
func (c *Call) Context() context.Context { return c.gin.Request.Context() }

// Param is a part of the path, as it was sent: never decoded.
func (c *Call) Param(name string) string { return c.gin.Param(name) }

// Lang is the language of the answer, by Accept-Language.
func (c *Call) Lang() string { return c.kit.o.Languages.Choose(c.gin.GetHeader("Accept-Language")) }

// Words are the texts of the catalog in force.
func (c *Call) Words() Words { return c.kit.o.Words() }

// Decides marks the call as an attempt to decide, for the record of a refusal.
func (c *Call) Decides() { c.decides = true }

// DecidesOn tells the record which approval the attempt spoke of.
func (c *Call) DecidesOn(ref string) {
	c.decides, c.ref = true, ref
}

// longestRef bounds what a caller's own text adds to a record.
const longestRef = 64

// about is what an auditor is told of a refused request; no body, no query and
// no header is among it.
func (c *Call) about() map[string]any {
	route := c.gin.FullPath()
	if route == "" {
		route = "unknown"
	}
	a := map[string]any{"method": c.gin.Request.Method, "route": route}
	if c.decides {
		a["operation"] = harness.OperationDecide
	}
	if c.ref != "" && len(c.ref) <= longestRef && clean(c.ref) {
		a["approval"] = c.ref
	}
	return a
}

// identify finds the principal where none is needed; a credential that opens
// nothing is as good as none there.
func (c *Call) identify() {
	if len(c.gin.Request.Header.Values("Authorization")) == 0 {
		return
	}
	if err := c.authenticate(); err != nil {
		c.Request.ActFor = ""
	}
}

// Operates says whether the caller sent a credential of an operator, on a route
// that asks for none.
func (c *Call) Operates() bool {
	c.identify()
	return c.Request.Principal.Has(anuencia.ScopeOperate)
}

// authenticate finds the principal. There is exactly one Authorization header,
// of scheme Bearer; two could be read in two ways by a proxy and by us.
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
	if surface := c.kit.o.Surface; len(surface) > 0 && !slices.ContainsFunc(surface, p.MayUse) {
		return anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonCredential)
	}
	c.Request.Principal = p
	if c.Request.Channel == "" {
		c.Request.Channel = p.DefaultChannel()
	}
	if c.Request.ActFor, err = c.Header("Anuencia-Actor", maxExternalID); err != nil {
		return err
	}
	c.readWait()
	return nil
}

const maxExternalID = 200

// Header is a header of the request that may stand once, as clean text of at
// most that many bytes; "" when it is absent. VALIDATION_FAILED/schema.
func (c *Call) Header(name string, most int) (string, error) {
	values := c.gin.Request.Header.Values(name)
	if len(values) == 0 {
		return "", nil
	}
	var rule string
	switch v := values[0]; {
	case len(values) > 1:
		rule = "once"
	case v == "":
		rule = "required"
	case len(v) > most:
		rule = "max"
	case !clean(v):
		rule = "characters"
	default:
		return v, nil
	}
	return "", anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: name, Rule: rule})
}

// clean says whether a text can be kept and compared: UTF-8 without control
// characters. PostgreSQL takes neither NUL nor broken UTF-8.
func clean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl)
}

// readWait reads Prefer: wait=N, seconds, brought within 0 to 60; what is no
// such preference is ignored, as RFC 7240 section 2 asks.
func (c *Call) readWait() {
	for _, h := range c.gin.Request.Header.Values("Prefer") {
		for part := range strings.SplitSeq(h, ",") {
			name, v, found := strings.Cut(strings.TrimSpace(part), "=")
			if !found || !strings.EqualFold(strings.TrimSpace(name), "wait") {
				continue
			}
			n, err := strconv.Atoi(strings.Trim(strings.TrimSpace(v), `"`))
			if err != nil || n < 0 {
				continue
			}
			c.Request.Wait = time.Duration(min(n, maxWait)) * time.Second
			return
		}
	}
}

// NameActor takes the actor of a body; one that differs from the header's is
// VALIDATION_FAILED/actor_mismatch.
func (c *Call) NameActor(externalID string) error {
	if c.Request.ActFor != "" && c.Request.ActFor != externalID {
		return anuencia.Invalid(anuencia.ReasonActorMismatch, anuencia.FieldError{Path: "/actor/external_id", Rule: "same_as_header"})
	}
	c.Request.ActFor = externalID
	return nil
}
