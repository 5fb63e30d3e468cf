package httpkit_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzDecode: whatever is sent, the answer is one of four, in the one shape, and
// what is taken is what was sent.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"name":"a"}`, `{"name":"a","inner":{"id":"x"},"list":[{"id":"y"}],"any":{"b":[1.5,null]}}`, `{"NAME":"a"}`, `{`, `[]`, `null`, "\xff",
		`{"name":"\ud800"}`, `{"name":"a","count":1e2}`, `{"name":"a","name":"b"}`, `{"name":"a"} `, "\ufeff{}", `{"name":"a","any":1e400}`,
	} {
		f.Add(seed)
	}
	w := newWorld(f, nil)
	f.Fuzz(func(t *testing.T, body string) {
		before := w.count()
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/things", strings.NewReader(body))
		req.Header.Set("Authorization", "Bearer "+goodToken)
		req.Header.Set("Content-Type", "application/json")
		rec := httptest.NewRecorder()
		w.handler.ServeHTTP(rec, req)
		switch rec.Code {
		case http.StatusNoContent:
			var sent struct {
				Name string `json:"name"`
			}
			if err := json.Unmarshal([]byte(body), &sent); err != nil || sent.Name != w.got.Name || w.got.Name == "" {
				t.Errorf("%q was taken as %+v", body, w.got)
			}
		case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
			if !json.Valid(rec.Body.Bytes()) || !strings.HasPrefix(rec.Body.String(), `{"execution_id":"`) || w.count() != before+1 {
				t.Errorf("%q was answered %d %s", body, rec.Code, rec.Body)
			}
		default:
			t.Errorf("%q was answered %d", body, rec.Code)
		}
	})
}
