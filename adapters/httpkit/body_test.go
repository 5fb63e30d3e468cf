package httpkit_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

func TestBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	deep := strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000)
	for name, c := range map[string]struct {
		body   string
		status int
		reason anuencia.Reason
		path   string
		rule   string
	}{
		"cut":            {`{"name":`, 400, anuencia.ReasonMalformed, "", ""},
		"spaces":         {" \n", 400, anuencia.ReasonMalformed, "", ""},
		"two":            {`{"name":"a"} {}`, 400, anuencia.ReasonMalformed, "", ""},
		"repeated":       {`{"name":"a","name":"b"}`, 400, anuencia.ReasonMalformed, "", ""},
		"bad utf-8":      {"{\"name\":\"\xff\"}", 400, anuencia.ReasonMalformed, "", ""},
		"deep":           {`{"name":"a","any":` + deep + `}`, 400, anuencia.ReasonMalformed, "", ""},
		"array":          {`[]`, 422, anuencia.ReasonSchema, "", "type"},
		"null":           {`null`, 422, anuencia.ReasonSchema, "/name", "required"},
		"unknown":        {`{"name":"a","extra":1}`, 422, anuencia.ReasonSchema, "/extra", "unknown"},
		"other case":     {`{"NAME":"a"}`, 422, anuencia.ReasonSchema, "/NAME", "unknown"},
		"unknown inside": {`{"name":"a","inner":{"id":"x","y":1}}`, 422, anuencia.ReasonSchema, "/inner/y", "unknown"},
		"long unknown":   {`{"name":"a","` + strings.Repeat("x", 500) + `":1}`, 422, anuencia.ReasonSchema, "", "unknown"},
		"type":           {`{"name":7}`, 422, anuencia.ReasonSchema, "/name", "type"},
		"fraction":       {`{"name":"a","count":1.5}`, 422, anuencia.ReasonSchema, "/count", "type"},
		"missing":        {`{}`, 422, anuencia.ReasonSchema, "/name", "required"},
		"missing inside": {`{"name":"a","inner":{}}`, 422, anuencia.ReasonSchema, "/inner/id", "required"},
		"in a list":      {`{"name":"a","list":[{"id":"x"},{}]}`, 422, anuencia.ReasonSchema, "/list/1/id", "required"},
		"max":            {`{"name":"abcdef"}`, 422, anuencia.ReasonSchema, "/name", "max"},
		"nul":            {`{"name":"a\u0000"}`, 422, anuencia.ReasonSchema, "/name", "nul"},
		"inexact":        {`{"name":"a","any":9007199254740993}`, 422, anuencia.ReasonSchema, "/any", "exact_number"},
	} {
		e := wantError(t, name, w.send(t, http.MethodPost, "/api/v1/things", c.body), c.status, anuencia.CodeValidation, c.reason)
		if f := e.Error.Details.Fields; c.status == 422 && (len(f) != 1 || f[0].Path != c.path || f[0].Rule != c.rule) {
			t.Errorf("%s: fields %+v", name, f)
		}
	}
	rec := w.send(t, http.MethodPost, "/api/v1/things", `{"name":"ñú\u202ee🎓","any":{"b":1.50}}`, "Content-Type", "application/json; charset=UTF-8")
	if rec.Code != http.StatusNoContent || w.got.Name != "ñú\u202ee🎓" || string(w.got.Any) != `{"b":1.50}` {
		t.Errorf("%d %+v", rec.Code, w.got)
	}
}

func TestMediaTypes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, media := range []string{"text/xml", "", "application/json; charset=latin1", "application/jsonx", "json", "application/x-www-form-urlencoded"} {
		rec := w.send(t, http.MethodPost, "/api/v1/things", `{"name":"a"}`, "Content-Type", media)
		wantError(t, media, rec, http.StatusUnsupportedMediaType, anuencia.CodeValidation, anuencia.ReasonMediaType)
	}
	rec := w.send(t, http.MethodPost, "/api/v1/things", `{"name":"a"}`, "Content-Encoding", "gzip")
	wantError(t, "gzip", rec, http.StatusUnsupportedMediaType, anuencia.CodeValidation, anuencia.ReasonMediaType)
}

// TestALargeBodyIsAnswered over a real connection: the sender, still sending,
// reads the answer.
func TestALargeBodyIsAnswered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	srv := httptest.NewServer(w.handler)
	defer srv.Close()
	body := append([]byte(`{"name":"`), bytes.Repeat([]byte("a"), 8<<20)...)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL+"/api/v1/things", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodToken)
	req.Header.Set("Content-Type", "application/json")
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	var e standardError
	if err := json.NewDecoder(res.Body).Decode(&e); err != nil {
		t.Error(err)
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
	if res.StatusCode != http.StatusRequestEntityTooLarge || e.Error.Details.MaxBytes != 1<<20 {
		t.Errorf("%d %+v", res.StatusCode, e)
	}
}

func TestASmallerLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil, func(o *httpkit.Options) { o.MaxBody = 12 })
	if rec := w.send(t, http.MethodPost, "/api/v1/things", `{"name":"a"}`); rec.Code != http.StatusNoContent {
		t.Errorf("as much as allowed: %d", rec.Code)
	}
	rec := w.send(t, http.MethodPost, "/api/v1/things", `{"name":"ab"}`, "Expect", "100-continue")
	wantError(t, "one more", rec, http.StatusRequestEntityTooLarge, anuencia.CodeValidation, anuencia.ReasonTooLarge)
}

func TestQueries(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for query, want := range map[string]string{
		"limit=0": "?limit min", "limit=201": "?limit max", "limit=x": "?limit type", "cursor=..": "?cursor cursor", "risk=none": "?risk oneof",
		"execution_id=1": "?execution_id uuid", "from=yesterday": "?from date-time", "subject=a&subject=b": "?subject once",
		"subject=%ff": "?subject characters", "subject=a%00": "?subject characters", "nada=1": "?nada unknown", "%ff=1": "? unknown",
		"subject=%zz": "? encoding", "subject=" + strings.Repeat("a", 201): "?subject max",
		"execution_id=" + strings.ToUpper("019a0000-0000-7000-8000-00000000000a"): "?execution_id uuid",
	} {
		e := wantError(t, query, w.send(t, http.MethodGet, "/api/v1/things?"+query, ""), http.StatusUnprocessableEntity, anuencia.CodeValidation, anuencia.ReasonSchema)
		var got []string
		for _, f := range e.Error.Details.Fields {
			got = append(got, f.Path+" "+f.Rule)
		}
		if !slices.Contains(got, want) {
			t.Errorf("%s: %v", query, got)
		}
	}
	good := url.Values{"limit": {"200"}, "cursor": {"019a0000-0000-7000-8000-000000000001"}, "risk": {"high"}, "from": {"2026-01-01T00:00:00-05:00"}, "subject": {"2023-114"}}
	if rec := w.send(t, http.MethodGet, "/api/v1/things?"+good.Encode(), ""); rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "200") {
		t.Errorf("%d %s", rec.Code, rec.Body)
	}
}
