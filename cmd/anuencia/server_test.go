package main_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuenciatest/pgtest"
)

// binary is the program under test, built once.
var binary string //nolint:gochecknoglobals // set by TestMain before any test runs

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "anuencia-bin")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	binary = filepath.Join(dir, "anuencia")
	args := []string{"build", "-o", binary}
	if os.Getenv("ANUENCIA_TEST_RACE") == "1" {
		args = append(args, "-race")
	}
	build := exec.Command("go", append(args, ".")...)
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		os.Exit(1)
	}
	code := pgtest.Main(m)
	if err := os.RemoveAll(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// onBoth runs a test on a server on the embedded default and on PostgreSQL.
func onBoth(t *testing.T, test func(s *server)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(start(t, t.TempDir()))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(start(t, t.TempDir(), "ANUENCIA_DATABASE_URL="+pgtest.URL(t)))
	})
}

// server is a running `anuencia serve --demo`.
type server struct {
	t      *testing.T
	dir    string
	env    []string
	base   string
	cmd    *exec.Cmd
	tokens map[string]string
	mu     sync.Mutex
	output bytes.Buffer
	done   chan error
}

func start(t *testing.T, dir string, env ...string) *server {
	t.Helper()
	s := &server{t: t, dir: dir, env: env}
	s.start()
	t.Cleanup(func() {
		if s.cmd.ProcessState == nil {
			if err := s.stop(syscall.SIGTERM); err != nil {
				t.Errorf("the server did not end well: %v", err)
			}
		}
		if t.Failed() {
			s.mu.Lock()
			defer s.mu.Unlock()
			t.Logf("output:\n%s", s.output.String())
		}
	})
	return s
}

var listens = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

func (s *server) start() {
	s.t.Helper()
	s.cmd = exec.Command(binary, "serve", "--demo", "--data", s.dir, "--listen", "127.0.0.1:0")
	s.cmd.Env = append(cleanEnv(), s.env...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.cmd.Stderr = &lockedWriter{s}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.done = make(chan error, 1)
	ready := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if addr := listens.FindString(lines.Text()); addr != "" {
				select {
				case ready <- addr:
				default:
				}
			}
			_, _ = (&lockedWriter{s}).Write(append(lines.Bytes(), '\n'))
		}
		s.done <- s.cmd.Wait()
	}()
	select {
	case s.base = <-ready:
	case err := <-s.done:
		s.t.Fatalf("did not start: %v\n%s", err, s.output.String())
	case <-time.After(60 * time.Second):
		s.t.Fatal("did not become ready within a minute")
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, "demo-tokens.json"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.tokens = map[string]string{}
	if err := json.Unmarshal(raw, &s.tokens); err != nil {
		s.t.Fatal(err)
	}
}

func cleanEnv() []string {
	var out []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "ANUENCIA_") {
			out = append(out, v)
		}
	}
	return out
}

type lockedWriter struct{ s *server }

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.s.mu.Lock()
	defer w.s.mu.Unlock()
	return w.s.output.Write(p)
}

func (s *server) stop(sig os.Signal) error {
	if err := s.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		s.t.Errorf("signal: %v", err)
	}
	return <-s.done
}

type reply struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

type header struct{ name, value string }

// call makes a request as the holder of the demo token named; "" sends none.
func (s *server) call(token, method, path, body string, headers ...header) reply {
	s.t.Helper()
	r, err := s.try(token, method, path, body, headers...)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return r
}

func (s *server) try(token, method, path, body string, headers ...header) (reply, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+s.tokens[token])
	}
	for _, h := range headers {
		req.Header.Set(h.name, h.value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return reply{}, err
	}
	raw, err := io.ReadAll(res.Body)
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return reply{}, err
	}
	out := reply{status: res.StatusCode, header: res.Header, raw: string(raw)}
	if strings.Contains(res.Header.Get("Content-Type"), "json") {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			return out, fmt.Errorf("body %q: %w", raw, err)
		}
	}
	return out, nil
}

// at digs into a body: at("error", "details", "policy_id").
func (r reply) at(path ...any) any {
	var v any = r.body
	for _, p := range path {
		switch key := p.(type) {
		case string:
			m, ok := v.(map[string]any)
			if !ok {
				return nil
			}
			v = m[key]
		case int:
			l, ok := v.([]any)
			if !ok || key >= len(l) {
				return nil
			}
			v = l[key]
		}
	}
	return v
}

func (r reply) str(path ...any) string { s, _ := r.at(path...).(string); return s }

func (s *server) want(r reply, status int, pairs ...any) reply {
	s.t.Helper()
	if r.status != status {
		s.t.Fatalf("status %d, want %d: %s", r.status, status, r.raw)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		var path []any
		for p := range strings.SplitSeq(fmt.Sprint(pairs[i]), ".") {
			path = append(path, p)
		}
		if got := r.at(path...); fmt.Sprint(got) != fmt.Sprint(pairs[i+1]) {
			s.t.Fatalf("%v is %v, want %v: %s", pairs[i], got, pairs[i+1], r.raw)
		}
	}
	return r
}

func (s *server) submit(token, intent, input string, headers ...header) reply {
	s.t.Helper()
	return s.call(token, http.MethodPost, "/api/v1/executions", fmt.Sprintf(`{"intent":%q,"input":%s}`, intent, input), headers...)
}

func (s *server) decide(token, verb, approval, reason string) reply {
	s.t.Helper()
	return s.call(token, http.MethodPost, "/"+verb, fmt.Sprintf(`{"approval_id":%q,"reason":%q}`, approval, reason))
}

// run runs the command line of the program on the server's data.
func (s *server) run(args ...string) (string, error) {
	cmd := exec.Command(binary, args...)
	cmd.Env = append(cleanEnv(), s.env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}
