package httpkit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// UseCases is what the edge itself needs of the product.
type UseCases interface {
	// Authenticate gives the principal of a credential, or IDENTITY_NOT_FOUND/credential.
	Authenticate(ctx context.Context, secret string) (anuencia.Principal, error)
	// Refuse records a request that came to nothing. An error stands for what the
	// caller hears instead.
	Refuse(ctx context.Context, r harness.Request, f *anuencia.Fault, about map[string]any) error
	// Brief says whether details are withheld from who sent r.
	Brief(ctx context.Context, r harness.Request) bool
}

// Words are the texts of the catalog in force.
type Words interface {
	contract.Messages
	Text(lang, key string) string
}

// Options of a Kit. All are required but CORSOrigins, TLS, MaxBody, Observe and
// Answered.
type Options struct {
	UseCases  UseCases
	Words     func() Words
	Languages contract.Languages
	Now       func() time.Time
	NewID     func() uuid.UUID // UUIDv7
	Log       *slog.Logger
	// Surface lists the channels of the credentials that this edge takes; others
	// are as unknown (contracts section 1). Empty: all.
	Surface     []anuencia.Channel
	CORSOrigins []string // exact origins that browsers may call the API from
	TLS         bool     // the process itself speaks TLS: HSTS is sent
	MaxBody     int64    // bytes; 1 MiB when zero (contracts section 6)
	// Observe is told of each answer: route pattern ("" for none), method, status, time.
	Observe func(route, method string, status int, took time.Duration)
	// Answered is told of each execution whose contract was sent, with the error
	// code that it carried, "" for a result.
	Answered func(state anuencia.State, code anuencia.Code)
}

const (
	defaultMaxBody = 1 << 20
	defaultWait    = 25 * time.Second
	maxWait        = 60 // seconds
)

// Kit makes routers and wraps handlers. Safe for concurrent use.
type Kit struct{ o Options }

// New checks that nothing required is missing.
func New(o Options) (*Kit, error) {
	if o.UseCases == nil || o.Words == nil || o.Now == nil || o.NewID == nil || o.Log == nil || len(o.Languages.All()) == 0 {
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
// and never cleans a path: one object has one name.
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
	r.NoRoute(k.nowhere(func() error { return anuencia.NotFound() }))
	r.NoMethod(k.nowhere(func() error { return anuencia.NewFault(anuencia.CodeValidation, anuencia.ReasonMethod) }))
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
		g.Abort()
		c.identify()
		k.fail(c, anuencia.NotFound())
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

// Open wraps a route that needs no credential.
func (k *Kit) Open(h Handler) gin.HandlerFunc {
	return func(g *gin.Context) { k.run(g, h) }
}

// Authed wraps a route that needs one: it is checked before anything of the
// body is read (governance section 1, rule 9).
func (k *Kit) Authed(h Handler) gin.HandlerFunc {
	return k.Open(func(c *Call) error {
		if err := c.authenticate(); err != nil {
			return err
		}
		return h(c)
	})
}

// nowhere answers what no route takes. A caller with a credential is known even
// there, so that their mistakes are not counted among those of strangers.
func (k *Kit) nowhere(fault func() error) gin.HandlerFunc {
	return k.Open(func(c *Call) error {
		c.identify()
		return fault()
	})
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
	if errors.Is(err, context.Canceled) && c.Context().Err() != nil {
		// The caller hung up while it waited: nobody reads an answer, and nothing
		// was refused.
		c.gin.Abort()
		return
	}
	ctx := context.WithoutCancel(c.Context())
	f := anuencia.AsFault(err)
	if rerr := k.record(ctx, c, f); rerr != nil {
		f = anuencia.AsFault(rerr)
		if f.Code == anuencia.CodeInternal {
			k.o.Log.ErrorContext(ctx, "a refusal could not be recorded", slog.Any("error", f), slog.String("request_id", c.Request.ID.String()))
		}
	}
	if c.gin.Writer.Written() {
		return // too late for another answer; the connection ends here
	}
	if f.Code == anuencia.CodeIdentityNotFound && f.Reason == anuencia.ReasonCredential {
		c.gin.Header("WWW-Authenticate", "Bearer")
	}
	c.write(contract.FromError(c.Request.ID, f, c.voice(k.brief(ctx, c, f))))
}

// record has a refusal recorded. It may be a panic that brought us here, so one
// more is no surprise.
func (k *Kit) record(ctx context.Context, c *Call, f *anuencia.Fault) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = anuencia.Unavailable("record a refusal", fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	return k.o.UseCases.Refuse(ctx, c.Request, f, c.about())
}

// brief says whether details are withheld. INTERNAL_ERROR has none anyway, and
// what it needs to be asked may be what failed.
func (k *Kit) brief(ctx context.Context, c *Call, f *anuencia.Fault) bool {
	if f.Code == anuencia.CodeInternal || c.Request.Channel.External() {
		return true
	}
	return !c.Request.Principal.ID.IsZero() && k.o.UseCases.Brief(ctx, c.Request)
}
