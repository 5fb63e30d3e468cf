package rest_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/contract"
)

func TestTheDescriptionIsOpenAPI(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromData(specFile(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context(), openapi3.IsOpenAPI31OrLater()); err != nil {
		t.Error(err)
	}
}

var parameter = regexp.MustCompile(`:([a-z_]+)`)

func TestEveryRouteIsDescribedAndTheReverse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var mounted, described []string
	for _, r := range w.router.Routes() {
		if r.Method != http.MethodHead {
			mounted = append(mounted, r.Method+" "+parameter.ReplaceAllString(r.Path, "{$1}"))
		}
	}
	for path := range object(w.spec.doc, "paths") {
		for method := range object(w.spec.doc, "paths", path) {
			described = append(described, strings.ToUpper(method)+" "+path)
		}
	}
	slices.Sort(mounted)
	slices.Sort(described)
	if !slices.Equal(mounted, described) {
		t.Errorf("mounted   %v\ndescribed %v", mounted, described)
	}
}

// TestEveryFaultOfEveryRoute is answered as described, in every language, and
// says nothing of its cause.
func TestEveryFaultOfEveryRoute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, r := range w.router.Routes() {
		if r.Method == http.MethodHead || !strings.HasPrefix(r.Path, "/api/") {
			continue
		}
		path := strings.NewReplacer(":id", "019a0000-0000-7000-8000-000000000001", ":ref", "ABCDEFG1", ":filename", "a.md").Replace(r.Path)
		payload := ""
		switch {
		case r.Path == executions && r.Method == http.MethodPost:
			payload = body
		case strings.HasSuffix(r.Path, "/approve"), strings.HasSuffix(r.Path, "/reject"):
			payload = `{}`
		case strings.HasSuffix(r.Path, "/holds") && r.Method == http.MethodPost:
			payload = `{"all":true,"reason":"r"}`
		case strings.HasSuffix(r.Path, "/lift"):
			payload = `{"reason":"r"}`
		case strings.HasSuffix(r.Path, "/tokens") && r.Method == http.MethodPost:
			payload = `{"name":"a","scopes":["submit"],"channels":["api"]}`
		}
		if strings.HasSuffix(r.Path, "/messages") {
			continue // it asks no use case
		}
		for _, lang := range catalog.Languages() {
			for _, f := range faults() {
				w.err = f.WithCause(errLeak)
				answer := w.send(t, "submit", r.Method, path, payload, "Accept-Language", lang)
				if answer.Code != contract.Status(f.Code, f.Reason) {
					t.Errorf("%s %s: %v gave %d", r.Method, path, f, answer.Code)
				}
				wantNoLeak(t, r.Method+" "+path, answer)
			}
			w.err = errLeak
			answer := w.send(t, "submit", r.Method, path, payload)
			answer.want(t, http.StatusInternalServerError, `"details":{}`)
			wantNoLeak(t, r.Method+" "+path, answer)
		}
		w.send(t, "", r.Method, path, payload).want(t, http.StatusUnauthorized)
	}
}

// faults are those that any use case may give.
func faults() []*anuencia.Fault {
	return []*anuencia.Fault{
		anuencia.Denied("x.y"), anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor),
		anuencia.NewFault(anuencia.CodeRateLimited, "").WithDetails(anuencia.Details{RetryAfterMS: 1, Limit: 1, Window: "1m"}),
		anuencia.NewFault(anuencia.CodeInternal, anuencia.ReasonUnavailable),
	}
}

func wantNoLeak(t *testing.T, name string, r reply) {
	t.Helper()
	all := r.raw + fmt.Sprint(r.Header())
	for _, secret := range []string{"audit_events", "pq:", "/srv", ".go", "goroutine", "hidden", "postgres"} {
		if strings.Contains(all, secret) {
			t.Errorf("%s leaks %q: %s", name, secret, all)
		}
	}
}

func TestHostileIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, bad := range []string{
		"nope", "..", "%2e%2e", "..%2f..%2fetc", "019A0000-0000-7000-8000-000000000001", "%7B019a0000-0000-7000-8000-000000000001%7D",
		"019a0000000070008000000000000001", "019a0000-0000-7000-8000-000000000001%00", strings.Repeat("a", 3000), "'%20OR%201=1", "%E2%80%AE",
	} {
		for _, path := range []string{executions + "/" + bad, executions + "/" + bad + "/events", "/api/v1/audit/events/" + bad, "/api/v1/audit/executions/" + bad} {
			r := w.send(t, "audit", http.MethodGet, path, "").want(t, http.StatusNotFound, `"reason":"not_found"`)
			if r.Header().Get("Location") != "" {
				t.Errorf("%s redirects", path)
			}
		}
	}
	for _, query := range []string{"limit=0", "limit=201", "state=nada", "cursor=..", "from=yesterday", "unknown=1", "risk=LOW", "code=x", "channel=cli"} {
		w.send(t, "submit", http.MethodGet, executions+"?"+query, "").want(t, http.StatusUnprocessableEntity, `"fields":[{"path":"?`)
	}
	for _, input := range []string{
		`[]`, `{"input":{}}`, `{"intent":"i"}`, `{"intent":"i","input":{},"callback_url":"https://x"}`, `{"intent":7,"input":{}}`,
		`{"intent":"i","input":{},"channel":"cli"}`, `{"intent":"i","input":{},"metadata":[]}`, `{"intent":"i","input":{},"actor":{}}`,
	} {
		w.send(t, "submit", http.MethodPost, executions, input).want(t, http.StatusUnprocessableEntity, `"fields":[{"path":`)
	}
	w.send(t, "submit", http.MethodPost, executions, body, "Idempotency-Key", strings.Repeat("k", 256)).want(t, 422, `"path":"Idempotency-Key"`)
}

func TestThePageNeedsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.send(t, "", http.MethodGet, "/docs", "").want(t, http.StatusOK, "/api/v1/executions/{id}", "Idempotency-Key", `id="shape-Approval"`, `href="#shape-Contract"`)
	for _, outside := range []string{"<script", "http://", "https://", "src=", "@import", "url(", " style=", "onclick"} {
		if strings.Contains(r.raw, outside) {
			t.Errorf("the page holds %q", outside)
		}
	}
	csp := r.Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "default-src 'none'; style-src 'sha256-") || !strings.Contains(csp, "frame-ancestors 'none'") || strings.Contains(csp, "unsafe") {
		t.Errorf("CSP %q", csp)
	}
	for _, link := range regexp.MustCompile(`href="#([^"]+)"`).FindAllStringSubmatch(r.raw, -1) {
		if !strings.Contains(r.raw, `id="`+link[1]+`"`) {
			t.Errorf("a link to nowhere: %s", link[1])
		}
	}
	w.send(t, "", http.MethodGet, "/openapi.yaml", "").want(t, http.StatusOK, "openapi: 3.1.0")
}
