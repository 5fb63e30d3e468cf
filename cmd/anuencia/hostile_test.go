package main_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
)

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

// standardError checks the shape of the one error contract, key by key.
func (s *server) standardError(r reply, name string, status int, code string) {
	s.t.Helper()
	if r.status != status || r.str("error", "code") != code {
		s.t.Errorf("%s: %d %s", name, r.status, r.raw)
		return
	}
	if !strings.HasPrefix(r.raw, `{"execution_id":"`) || len(r.body) != 3 || r.str("status") != "failed" || !uuidForm.MatchString(r.str("execution_id")) {
		s.t.Errorf("%s: not the standard error: %s", name, r.raw)
	}
	e, ok := r.at("error").(map[string]any)
	if !ok || len(e) != 3 || e["details"] == nil || r.str("error", "message") == "" {
		s.t.Errorf("%s: not the standard error: %s", name, r.raw)
	}
	if !strings.HasPrefix(r.header.Get("Content-Type"), "application/json") || r.header.Get("X-Content-Type-Options") != "nosniff" ||
		r.header.Get("Cache-Control") != "no-store" || r.header.Get("X-Request-Id") == "" {
		s.t.Errorf("%s: headers %v", name, r.header)
	}
}

// TestBadInput sends what no honest client sends: the standard error, nothing
// lost, nothing stored half.
func TestBadInput(t *testing.T) {
	t.Parallel()
	onBoth(t, func(s *server) {
		deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
		for name, c := range map[string]struct {
			body   string
			status int
		}{
			"malformed":      {`{"intent":`, 400},
			"two values":     {`{} {}`, 400},
			"duplicate keys": {`{"intent":"a","intent":"b","input":{}}`, 400},
			"bad utf-8":      {"{\"intent\":\"\xff\",\"input\":{}}", 400},
			"5000 levels":    {`{"intent":"documento.buscar","input":` + deep + `}`, 400},
			"empty":          {"", 415},
			"array":          {`[]`, 422},
			"unknown field":  {`{"intent":"documento.buscar","input":{"consulta":"beca"},"extra":1}`, 422},
			"wrong type":     {`{"intent":7,"input":{"consulta":"beca"}}`, 422},
			"no intent":      {`{"input":{}}`, 422},
			"no input":       {`{"intent":"documento.buscar"}`, 422},
			"unknown intent": {`{"intent":"nada.de.nada","input":{}}`, 422},
			"schema":         {`{"intent":"consulta.matricula","input":{"estudiante_id":"x"}}`, 422},
			"unknown input":  {`{"intent":"consulta.matricula","input":{"estudiante_id":"2023-114","x":1}}`, 422},
			"nul in a name":  {`{"intent":"documento.buscar","input":{"consulta":"beca","a\u0000":1}}`, 422},
			"nul":            {`{"intent":"documento.buscar","input":{"consulta":"a\u0000b"}}`, 422},
			"inexact":        {`{"intent":"documento.buscar","input":{"consulta":"beca","n":9007199254740993}}`, 422},
			"overflow":       {`{"intent":"documento.buscar","input":{"consulta":"beca","n":1e999}}`, 422},
		} {
			s.standardError(s.call("requester", http.MethodPost, "/api/v1/executions", c.body), name, c.status, "VALIDATION_FAILED")
		}
		big := `{"intent":"documento.buscar","input":{"consulta":"` + strings.Repeat("a", 3<<20) + `"}}`
		s.standardError(s.call("requester", http.MethodPost, "/api/v1/executions", big), "3 MiB", 413, "VALIDATION_FAILED")
		for _, path := range []string{
			"/api/v1/executions/..%2f..%2fetc", "/api/v1/executions/%2e%2e/x", "/api/v1/executions/nope", "/api/v1//executions",
			"/api/v1/executions/00000000-0000-7000-8000-000000000000", "/nada", "/api/v1/executions/" + strings.Repeat("a", 3000),
		} {
			s.standardError(s.call("requester", http.MethodGet, path, ""), path, 404, "VALIDATION_FAILED")
		}
		s.standardError(s.call("requester", http.MethodDelete, "/api/v1/executions", ""), "method", 405, "VALIDATION_FAILED")
		s.standardError(s.call("requester", http.MethodPost, "/api/v1/executions", "<x/>", header{"Content-Type", "text/xml"}), "media type", 415, "VALIDATION_FAILED")
		for name, value := range map[string]string{
			"no credential": "", "garbage": "Bearer x", "basic": "Basic eDp5", "almost": "Bearer anu_" + strings.Repeat("0", 72),
		} {
			r := s.call("", http.MethodPost, "/api/v1/executions", `{}`, header{"Authorization", value})
			s.standardError(r, name, 401, "IDENTITY_NOT_FOUND")
		}
		// Ordinary writing of any script is input, not an attack; direction marks are kept as they are.
		r := s.submit("requester", "documento.buscar", `{"consulta":"becas ñandú مرحبا 🎓 \u202eodnum"}`)
		s.want(r, 200, "status", "completed")
		for _, query := range []string{"limit=0", "limit=201", "limit=x", "state=nada", "cursor=..", "from=yesterday"} {
			s.standardError(s.call("requester", http.MethodGet, "/api/v1/executions?"+query, ""), query, 422, "VALIDATION_FAILED")
		}
		s.verify()
	})
}

// TestAFloodOfUnknownCredentials is answered from memory and counted.
func TestAFloodOfUnknownCredentials(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	got := map[int]int{}
	for range 40 {
		got[s.submit("", "x", `{}`).status]++
	}
	if got[401] == 0 || got[401] > 15 || got[429] == 0 {
		t.Fatalf("statuses %v", got)
	}
	s.want(s.submit("requester", "documento.buscar", `{"consulta":"beca"}`), 200)
}

// TestRawRequests are those that no client library would send.
func TestRawRequests(t *testing.T) {
	t.Parallel()
	s := start(t, t.TempDir())
	for name, c := range map[string]struct {
		head string
		want []int
	}{
		"two credentials": {"GET /api/v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.tokens["requester"] + "\r\nAuthorization: Bearer y\r\nConnection: close\r\n\r\n", []int{401}},
		"dots in path":    {"GET /api/v1/../v1/executions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", []int{401, 404}},
		"half a body":     {"POST /api/v1/executions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + s.tokens["requester"] + "\r\nContent-Type: application/json\r\nContent-Length: 50\r\nConnection: close\r\n\r\n{", []int{400}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := net.Dialer{Timeout: 10 * time.Second}
			conn, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(s.base, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
			}()
			if _, err := conn.Write([]byte(c.head)); err != nil {
				t.Fatal(err)
			}
			if tcp, ok := conn.(*net.TCPConn); ok {
				if err := tcp.CloseWrite(); err != nil {
					t.Fatal(err)
				}
			}
			var answer bytes.Buffer
			if _, err := answer.ReadFrom(conn); err != nil {
				t.Fatal(err)
			}
			status := 0
			if _, err := fmt.Sscanf(answer.String(), "HTTP/1.1 %d", &status); err != nil && answer.Len() > 0 {
				t.Fatalf("answer %q", answer.String())
			}
			ok := false
			for _, w := range c.want {
				ok = ok || status == w
			}
			if !ok {
				t.Fatalf("status %d: %s", status, answer.String())
			}
		})
	}
	s.want(s.call("requester", http.MethodGet, "/api/v1/executions", ""), 200)
}
