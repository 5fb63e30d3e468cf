package httpkit_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func TestMissingParts(t *testing.T) {
	t.Parallel()
	if _, err := httpkit.New(httpkit.Options{}); err == nil {
		t.Error("a kit of nothing was made")
	}
}

func TestCredentials(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, values := range map[string][]string{
		"none": nil, "two": {"Bearer " + goodToken, "Bearer " + goodToken}, "unknown": {"Bearer x"}, "basic": {"Basic " + goodToken},
		"bare": {goodToken}, "empty": {""},
	} {
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/things", strings.NewReader("{"))
		req.Header["Authorization"] = values
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, req)
		wantError(t, name, rec, http.StatusUnauthorized, anuencia.CodeIdentityNotFound, anuencia.ReasonCredential)
		if rec.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%s: no challenge", name)
		}
		if r := w.last(t); !r.request.Principal.ID.IsZero() || r.about["route"] != "/api/v1/things" || r.request.Remote != "192.0.2.1" {
			t.Errorf("%s: recorded %+v", name, r)
		}
	}
	rec := w.send(t, http.MethodGet, "/api/v1/things/x", "", "Authorization", "bearer "+goodToken)
	if rec.Code != http.StatusOK {
		t.Errorf("the scheme is compared without case: %d", rec.Code)
	}
}

func TestWhatARequestCarries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	rec := w.send(t, http.MethodGet, "/api/v1/things/x", "",
		"Anuencia-Actor", "2023-114", "Prefer", "respond-async, wait=7", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	r := w.request
	if rec.Code != http.StatusOK || r.ActFor != "2023-114" || r.Wait != 7*time.Second || r.TraceID != "0af7651916cd43dd8448eb211c80319c" ||
		r.Channel != anuencia.ChannelAPI || r.ID.String() != rec.Header().Get("X-Request-Id") || r.Received.IsZero() {
		t.Errorf("%d %+v", rec.Code, r)
	}
	for prefer, want := range map[string]time.Duration{
		"": 25 * time.Second, "wait=0": 0, "wait=60": time.Minute, "wait=3600": time.Minute, "wait=-1": 25 * time.Second,
		"wait=x": 25 * time.Second, `wait="5"`: 5 * time.Second, "WAIT = 9": 9 * time.Second,
	} {
		w.send(t, http.MethodGet, "/api/v1/things/x", "", "Prefer", prefer)
		if w.request.Wait != want {
			t.Errorf("%q: %s", prefer, w.request.Wait)
		}
	}
	for _, parent := range []string{
		"00-00000000000000000000000000000000-b7ad6b7169203331-01", "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01", "x", "",
		"00-0af7651916cd43dd8448eb211c80319c+b7ad6b7169203331-01",
	} {
		w.send(t, http.MethodGet, "/api/v1/things/x", "", "Traceparent", parent)
		if w.request.TraceID != "" {
			t.Errorf("%q gave %q", parent, w.request.TraceID)
		}
	}
	for name, value := range map[string]string{"long": strings.Repeat("a", 201), "nul": "a\x00", "bad utf-8": "a\xff", "empty": ""} {
		rec := w.send(t, http.MethodGet, "/api/v1/things/x", "", "Anuencia-Actor", value)
		e := wantError(t, name, rec, http.StatusUnprocessableEntity, anuencia.CodeValidation, anuencia.ReasonSchema)
		if len(e.Error.Details.Fields) != 1 || e.Error.Details.Fields[0].Path != "Anuencia-Actor" {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, path := range []string{
		"/nada", "/api/v1/things/", "/api/v1//things", "/api/v1/things/..", "/api/v1/things/%2e%2e", "/api/v1/things/a%2Fb", "/api/v1/things/a%00",
		"/api/v1/things/a%5cb", "/api/v1/./things", "/API/V1/things", "/api/v1/things/.",
	} {
		rec := w.send(t, http.MethodGet, path, "")
		wantError(t, path, rec, http.StatusNotFound, anuencia.CodeValidation, anuencia.ReasonNotFound)
		if rec.Header().Get("Location") != "" {
			t.Errorf("%s: redirects to %s", path, rec.Header().Get("Location"))
		}
		if w.last(t).request.Principal.ID.IsZero() {
			t.Errorf("%s: the caller is known, the record does not say so", path)
		}
	}
	for _, method := range []string{http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodOptions, "PROPFIND"} {
		rec := w.send(t, method, "/api/v1/things", "")
		wantError(t, method, rec, http.StatusMethodNotAllowed, anuencia.CodeValidation, anuencia.ReasonMethod)
		if allow := rec.Header().Get("Allow"); !strings.Contains(allow, "GET") || !strings.Contains(allow, "POST") {
			t.Errorf("%s: Allow %q", method, allow)
		}
	}
	before := w.count()
	if rec := w.send(t, http.MethodGet, "/open", ""); rec.Code != http.StatusOK || w.count() != before {
		t.Errorf("open route: %d", rec.Code)
	}
	if rec := w.send(t, http.MethodGet, "/nada", "", "Authorization", "Bearer x"); rec.Code != http.StatusNotFound {
		t.Errorf("unknown path with an unknown credential: %d", rec.Code)
	}
	if !slices.Contains(w.seen, "GET  Not Found") || !slices.Contains(w.seen, "GET /open OK") {
		t.Errorf("observed %v", w.seen)
	}
}

// secrets are what must never leave: texts of databases, paths, stacks.
func secrets() []string {
	return []string{"executions", "pq:", "/srv/", "goroutine", "runtime", ".go:", "kaboom", "secret", "postgres"}
}

func wantNoLeak(t *testing.T, name string, rec *httptest.ResponseRecorder) {
	t.Helper()
	all := rec.Body.String() + fmt.Sprint(rec.Header())
	for _, s := range secrets() {
		if strings.Contains(all, s) {
			t.Errorf("%s leaks %q: %s", name, s, all)
		}
	}
}

func TestFailuresLeakNothing(t *testing.T) {
	t.Parallel()
	cause := errors.New(`pq: relation "executions" does not exist at /srv/app/store.go:12, postgres://u:secret@db`)
	for name, c := range map[string]struct {
		op     httpkit.Handler
		status int
		code   anuencia.Code
		reason anuencia.Reason
	}{
		"panic":     {func(*httpkit.Call) error { panic("kaboom " + cause.Error()) }, 500, anuencia.CodeInternal, ""},
		"panic nil": {func(c *httpkit.Call) error { var none []string; return errors.New(none[len(c.Param("id"))]) }, 500, anuencia.CodeInternal, ""},
		"plain":     {func(*httpkit.Call) error { return fmt.Errorf("reading: %w", cause) }, 500, anuencia.CodeInternal, ""},
		"internal":  {func(*httpkit.Call) error { return anuencia.Internal("store", cause) }, 500, anuencia.CodeInternal, ""},
		"away":      {func(*httpkit.Call) error { return anuencia.Unavailable("store", cause) }, 503, anuencia.CodeInternal, ""},
		"denied":    {func(*httpkit.Call) error { return anuencia.Denied("x.y").WithCause(cause) }, 403, anuencia.CodePolicyDenied, ""},
		"conflict":  {func(*httpkit.Call) error { return fmt.Errorf("put: %w", harness.ErrConflict) }, 500, anuencia.CodeInternal, ""},
		"unknown":   {func(*httpkit.Call) error { return anuencia.NewFault("KABOOM", "secret").WithCause(cause) }, 500, anuencia.CodeInternal, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.op)
			rec := w.send(t, http.MethodGet, "/api/v1/things/x", "")
			wantNoLeak(t, name, rec)
			wantError(t, name, rec, c.status, c.code, c.reason)
			if (rec.Header().Get("Retry-After") != "") != (c.status == http.StatusServiceUnavailable) {
				t.Errorf("Retry-After %q", rec.Header().Get("Retry-After"))
			}
			if f := w.last(t).fault; name == "panic" && (!strings.Contains(f.Error(), "goroutine") || !strings.Contains(f.Error(), "kaboom")) {
				t.Errorf("the stack is not on record: %v", f)
			}
		})
	}
}

func TestWhenTheRecordFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.instead = anuencia.Unavailable("record", errors.New("pq: secret"))
	rec := w.send(t, http.MethodGet, "/nada", "")
	wantNoLeak(t, "away", rec)
	wantError(t, "away", rec, http.StatusServiceUnavailable, anuencia.CodeInternal, "")
	w.instead = anuencia.NewFault(anuencia.CodeRateLimited, "").WithDetails(anuencia.Details{RetryAfterMS: 2500})
	rec = w.send(t, http.MethodGet, "/api/v1/things/x", "", "Authorization", "Bearer x")
	wantError(t, "flood", rec, http.StatusTooManyRequests, anuencia.CodeRateLimited, "")
	if rec.Header().Get("Retry-After") != "3" {
		t.Errorf("Retry-After %q", rec.Header().Get("Retry-After"))
	}
	w.panics = true
	rec = w.send(t, http.MethodGet, "/nada", "")
	wantNoLeak(t, "broken record", rec)
	wantError(t, "broken record", rec, http.StatusServiceUnavailable, anuencia.CodeInternal, "")
}

func TestBriefCallersGetNoDetails(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(*httpkit.Call) error { return anuencia.Denied("x.y") })
	if e := wantError(t, "whole", w.send(t, http.MethodGet, "/api/v1/things/x", ""), http.StatusForbidden, anuencia.CodePolicyDenied, ""); e.Error.Details.PolicyID != "x.y" {
		t.Errorf("%+v", e)
	}
	w.isBrief = true
	rec := w.send(t, http.MethodGet, "/api/v1/things/x", "", "Accept-Language", "en-GB, es;q=0.5")
	if !strings.Contains(rec.Body.String(), `"details":{}`) || rec.Header().Get("Content-Language") != "en" {
		t.Errorf("%s %v", rec.Body, rec.Header())
	}
}

func TestAHangUpIsNoRefusal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *httpkit.Call) error { return fmt.Errorf("wait: %w", c.Context().Err()) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/open", nil)
	w.handler.ServeHTTP(httptest.NewRecorder(), req)
	if w.count() != 0 {
		t.Errorf("recorded %+v", w.refusals)
	}
}

func TestCORS(t *testing.T) {
	t.Parallel()
	const origin = "https://ui.example"
	w := newWorld(t, nil, func(o *httpkit.Options) { o.CORSOrigins = []string{origin}; o.TLS = true })
	rec := w.send(t, http.MethodGet, "/api/v1/things/x", "", "Origin", origin)
	h := rec.Header()
	if h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Expose-Headers") != "Location, Retry-After, X-Request-Id, UHP-Version" ||
		h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" || h.Get("Strict-Transport-Security") == "" {
		t.Errorf("headers %v", h)
	}
	rec = w.send(t, http.MethodOptions, "/api/v1/things", "", "Origin", origin, "Access-Control-Request-Method", "POST")
	if rec.Code != http.StatusNoContent || !strings.Contains(rec.Header().Get("Access-Control-Allow-Headers"), "Idempotency-Key") {
		t.Errorf("preflight: %d %v", rec.Code, rec.Header())
	}
	for name, c := range map[string][2]string{"other origin": {"/api/v1/things/x", "https://evil.example"}, "no API": {"/open", origin}} {
		rec := w.send(t, http.MethodGet, c[0], "", "Origin", c[1])
		if rec.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", name, rec.Header())
		}
	}
	off := newWorld(t, nil)
	if rec := off.send(t, http.MethodGet, "/api/v1/things/x", "", "Origin", origin); rec.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("off by default: %v", rec.Header())
	}
}
