// Package httpkit is the one edge that every HTTP surface shares: the id of a
// request, who calls, strict bodies, limits, and the one way in which a result
// or a fault is written. It has no rule of its own.
package httpkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// UseCases is what the edge itself needs of the product.
type UseCases interface {
	Authenticate(ctx context.Context, secret string) (anuencia.Principal, error)
	Refuse(ctx context.Context, r harness.Request, f *anuencia.Fault, about map[string]any) error
	Brief(ctx context.Context, r harness.Request) bool
}

// Words are the texts of the catalog in force.
type Words interface {
	contract.Messages
	Text(lang, key string) string
}

// Options of a Kit. All are required but CORSOrigins, TLS and MaxBody.
type Options struct {
	UseCases    UseCases
	Words       func() Words
	Languages   contract.Languages
	Now         func() time.Time
	NewID       func() uuid.UUID // UUIDv7
	Log         *slog.Logger
	CORSOrigins []string
	TLS         bool
	MaxBody     int64 // bytes; 1 MiB when zero (contracts section 6)
	// Observe is told of each answer: route pattern, method, status, time.
	Observe func(route, method string, status int, took time.Duration)
}

const (
	defaultMaxBody = 1 << 20
	defaultWait    = 25 * time.Second
	maxWait        = 60
)

// Kit makes routers and wraps handlers. Safe for concurrent use.
type Kit struct{ o Options }

// New checks that nothing required is missing.
func New(o Options) (*Kit, error) {
	if o.UseCases == nil || o.Words == nil || o.Now == nil || o.NewID == nil || o.Log == nil {
		return nil, errors.New("httpkit: a required option is missing")
	}
	if o.MaxBody == 0 {
		o.MaxBody = defaultMaxBody
	}
	return &Kit{o: o}, nil
}

// Handler is a route. What it returns as an error is recorded and written as
// the standard error.
type Handler func(c *Call) error

// Router gives an engine with the shared edge and no routes. It never redirects
// and never cleans a path.
func (k *Kit) Router() *gin.Engine {
	gin.SetMode(gin.ReleaseMode)
	r := gin.New()
	r.RedirectTrailingSlash = false
	r.RedirectFixedPath = false
	r.RemoveExtraSlash = false
	r.UseRawPath = true
	r.UnescapePathValues = false
	r.HandleMethodNotAllowed = true
	r.ContextWithFallback = false
	r.Use(k.enter)
	r.NoRoute(k.Open(func(*Call) error { return anuencia.NotFound() }))
	r.NoMethod(k.Open(func(*Call) error { return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMethod) }))
	return r
}

const callKey = "anuencia.call"

// enter mints the request's id, sets the headers of every answer, and catches
// panics.
func (k *Kit) enter(g *gin.Context) {
	began := k.o.Now()
	c := &Call{kit: k, gin: g, Request: harness.Request{
		ID: anuencia.ExecutionID(k.o.NewID()), Received: began, Wait: defaultWait, Remote: remote(g.Request), TraceID: traceID(g.Request),
	}}
	g.Set(callKey, c)
	h := g.Writer.Header()
	h.Set("X-Request-Id", c.Request.ID.String())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if k.o.TLS {
		h.Set("Strict-Transport-Security", "max-age=31536000; includeSubDomains")
	}
	defer func() {
		if k.o.Observe != nil {
			k.o.Observe(g.FullPath(), g.Request.Method, g.Writer.Status(), k.o.Now().Sub(began))
		}
	}()
	defer k.recovered(c)
	if k.cors(g) {
		return
	}
	if !plainPath(g.Request.URL.EscapedPath()) {
		k.fail(c, anuencia.NotFound())
		g.Abort()
		return
	}
	g.Next()
}

// recovered turns a panic into INTERNAL_ERROR; the stack goes to the audit only.
func (k *Kit) recovered(c *Call) {
	p := recover()
	if p == nil {
		return
	}
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, and it is never wrapped
		panic(p)
	}
	c.gin.Abort()
	k.fail(c, anuencia.Internal("panic", fmt.Errorf("%v\n%s", p, debug.Stack())))
}

// plainPath refuses what routers and proxies clean or decode in different ways:
// dots, encoded slashes and dots, doubled slashes, backslashes.
func plainPath(p string) bool {
	lower := strings.ToLower(p)
	for _, bad := range []string{"..", "//", "%2f", "%2e", "%5c", "%00", "\\", "/./"} {
		if strings.Contains(lower, bad) {
			return false
		}
	}
	return true
}

func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// traceID reads the trace id of a W3C traceparent header; "" for one that is
// absent or malformed.
func traceID(r *http.Request) string {
	const form = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	h := r.Header.Get("Traceparent")
	if len(h) != form || h[2] != '-' || h[35] != '-' || h[52] != '-' {
		return ""
	}
	id := h[3:35]
	zero := true
	for _, c := range id {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return ""
		}
		zero = zero && c == '0'
	}
	if zero {
		return ""
	}
	return id
}

// cors answers for the origins on the list, and says whether the request was a
// preflight and is done.
func (k *Kit) cors(g *gin.Context) bool {
	origin := g.GetHeader("Origin")
	if origin == "" || len(k.o.CORSOrigins) == 0 {
		return false
	}
	h := g.Writer.Header()
	h.Add("Vary", "Origin")
	for _, allowed := range k.o.CORSOrigins {
		if origin != allowed {
			continue
		}
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Location, Retry-After, X-Request-Id, UHP-Version")
		if g.Request.Method != http.MethodOptions || g.GetHeader("Access-Control-Request-Method") == "" {
			return false
		}
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Idempotency-Key, Anuencia-Actor, Prefer, Accept-Language, Traceparent, UHP-Version")
		h.Set("Access-Control-Max-Age", "600")
		g.AbortWithStatus(http.StatusNoContent)
		return true
	}
	return false
}

// Open wraps a route that needs no credential.
func (k *Kit) Open(h Handler) gin.HandlerFunc {
	return func(g *gin.Context) { k.run(g, h) }
}

// Authed wraps a route that needs one: it is checked before anything of the
// body is read (governance section 1, rule 9).
func (k *Kit) Authed(h Handler) gin.HandlerFunc {
	return func(g *gin.Context) {
		k.run(g, func(c *Call) error {
			if err := c.authenticate(); err != nil {
				return err
			}
			return h(c)
		})
	}
}

func (k *Kit) run(g *gin.Context, h Handler) {
	v, _ := g.Get(callKey)
	c, ok := v.(*Call)
	if !ok {
		g.AbortWithStatus(http.StatusInternalServerError)
		return
	}
	if err := h(c); err != nil {
		k.fail(c, err)
	}
}

// fail records a refusal and writes it.
func (k *Kit) fail(c *Call, err error) {
	ctx := context.WithoutCancel(c.Context())
	f := anuencia.AsFault(err)
	if rerr := k.o.UseCases.Refuse(ctx, c.Request, f, c.about()); rerr != nil {
		f = anuencia.AsFault(rerr)
		if f.Code == anuencia.CodeInternal {
			k.o.Log.ErrorContext(ctx, "a refusal could not be recorded", slog.Any("error", f), slog.String("request_id", c.Request.ID.String()))
		}
	}
	if c.gin.Writer.Written() {
		return // too late for another answer; the connection ends here
	}
	brief := c.Request.Channel.External() || (!c.Request.Principal.ID.IsZero() && k.o.UseCases.Brief(ctx, c.Request))
	if f.Code == anuencia.CodeIdentityNotFound && f.Reason == anuencia.ReasonCredential {
		c.gin.Header("WWW-Authenticate", "Bearer")
	}
	c.write(contract.FromError(c.Request.ID, f, c.voice(brief)))
}
