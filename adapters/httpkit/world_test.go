package httpkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gin-gonic/gin"
	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	embedded "github.com/anuencia-harness/anuencia/catalog"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const goodToken = "anu_good"

// refusal is what the edge had recorded.
type refusal struct {
	request harness.Request
	fault   *anuencia.Fault
	about   map[string]any
}

// useCases know one token and remember every refusal.
type useCases struct {
	mu       sync.Mutex
	refusals []refusal
	instead  error // what Refuse answers
	panics   bool  // Refuse itself panics
	isBrief  bool
}

func (u *useCases) Authenticate(_ context.Context, secret string) (anuencia.Principal, error) {
	if secret != goodToken {
		return anuencia.Principal{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonCredential)
	}
	return anuencia.Principal{
		ID: anuencia.PrincipalID(uuid.UUID{1}), Name: "p", Channels: []anuencia.Channel{anuencia.ChannelAPI},
		Scopes: []anuencia.Scope{anuencia.ScopeOperate},
	}, nil
}

func (u *useCases) Refuse(_ context.Context, r harness.Request, f *anuencia.Fault, about map[string]any) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.refusals = append(u.refusals, refusal{r, f, about})
	if u.panics {
		panic("the record is broken at /srv/secret")
	}
	return u.instead
}

func (u *useCases) Brief(context.Context, harness.Request) bool { return u.isBrief }

func (u *useCases) last(t *testing.T) refusal {
	t.Helper()
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.refusals) == 0 {
		t.Fatal("nothing was recorded")
	}
	return u.refusals[len(u.refusals)-1]
}

func (u *useCases) count() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.refusals)
}

// thing is the body of the test's own route.
type thing struct {
	Name  string          `json:"name" validate:"required,max=5"`
	Count int             `json:"count" validate:"max=3"`
	Inner *inner          `json:"inner"`
	List  []inner         `json:"list" validate:"dive"`
	Any   json.RawMessage `json:"any"`
}

type inner struct {
	ID string `json:"id" validate:"required"`
}

type world struct {
	*useCases
	handler http.Handler
	kit     *httpkit.Kit
	got     thing
	request harness.Request
	seen    []string // what Observe was told
}

// newWorld has POST /api/v1/things (a body), GET /api/v1/things (a list), GET
// /api/v1/things/:id (what op does) and GET /open.
func newWorld(tb testing.TB, op httpkit.Handler, change ...func(*httpkit.Options)) *world {
	tb.Helper()
	words, err := catalog.Load(embedded.FS, catalog.Options{Demo: true})
	if err != nil {
		tb.Fatal(err)
	}
	w := &world{useCases: &useCases{}}
	o := httpkit.Options{
		UseCases: w.useCases, Words: func() httpkit.Words { return words }, Languages: contract.NewLanguages("es", "en"),
		Now: time.Now, NewID: func() uuid.UUID { return uuid.Must(uuid.NewV7()) }, Log: slog.New(slog.DiscardHandler),
		Observe: func(route, method string, status int, _ time.Duration) {
			w.seen = append(w.seen, method+" "+route+" "+http.StatusText(status))
		},
	}
	for _, c := range change {
		c(&o)
	}
	if w.kit, err = httpkit.New(o); err != nil {
		tb.Fatal(err)
	}
	router := w.kit.Router()
	w.mount(router, op)
	w.handler = router
	return w
}

func (w *world) mount(r gin.IRouter, op httpkit.Handler) {
	if op == nil {
		op = func(c *httpkit.Call) error {
			w.request = c.Request
			return c.JSON(http.StatusOK, map[string]string{"id": c.Param("id")})
		}
	}
	r.POST("/api/v1/things", w.kit.Authed(func(c *httpkit.Call) error {
		w.got = thing{}
		if err := c.Decode(&w.got); err != nil {
			return err
		}
		w.request = c.Request
		return c.NoContent(http.StatusNoContent)
	}))
	r.GET("/api/v1/things", w.kit.Authed(func(c *httpkit.Call) error {
		q := c.Query()
		page := q.Page()
		httpkit.Enum[anuencia.Risk](q, "risk")
		httpkit.ID[anuencia.ExecutionID](q, "execution_id")
		q.Time("from")
		q.Text("subject")
		if err := q.Err(); err != nil {
			return err
		}
		return c.JSON(http.StatusOK, page)
	}))
	r.GET("/api/v1/things/:id", w.kit.Authed(op))
	r.GET("/open", w.kit.Open(op))
}

// send makes a request with the good token; headers come in pairs, and a later
// one of the same name replaces.
func (w *world) send(t *testing.T, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+goodToken)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	rec := httptest.NewRecorder()
	w.handler.ServeHTTP(rec, req)
	return rec
}

type standardError struct {
	ExecutionID string `json:"execution_id"`
	Status      string `json:"status"`
	Error       struct {
		Code    string               `json:"code"`
		Message string               `json:"message"`
		Details contract.DetailsBody `json:"details"`
	} `json:"error"`
}

// wantError checks the one shape of errors, and that its id is the request's.
func wantError(t *testing.T, name string, rec *httptest.ResponseRecorder, status int, code anuencia.Code, reason anuencia.Reason) standardError {
	t.Helper()
	var e standardError
	d := json.NewDecoder(rec.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil && !errors.Is(err, io.EOF) {
		t.Errorf("%s: %d %v", name, rec.Code, err)
	}
	if rec.Code != status || e.Error.Code != string(code) || (status != 503 && status != 500 && e.Error.Details.Reason != string(reason)) || e.Status != "failed" || e.Error.Message == "" {
		t.Errorf("%s: %d %+v, want %d %s %s", name, rec.Code, e, status, code, reason)
	}
	if e.ExecutionID == "" || e.ExecutionID != rec.Header().Get("X-Request-Id") {
		t.Errorf("%s: id %q, X-Request-Id %q", name, e.ExecutionID, rec.Header().Get("X-Request-Id"))
	}
	if rec.Header().Get("Content-Type") != "application/json; charset=utf-8" || rec.Header().Get("Cache-Control") != "no-store" ||
		rec.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s: headers %v", name, rec.Header())
	}
	return e
}
