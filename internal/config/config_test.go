package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anuencia-harness/anuencia/internal/config"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLaterSourcesWin(t *testing.T) {
	t.Parallel()
	file := write(t, "a.yaml", "listen: 127.0.0.1:1\nlanguage: en\ncors_origins: [https://a.example, https://b.example]\ndemo: true\n")
	secret := write(t, "url", "postgres://app:pw@localhost/db\n")
	env := []string{
		"ANUENCIA_LISTEN=127.0.0.1:2", "ANUENCIA_DATABASE_URL_FILE=" + secret, "ANUENCIA_SOURCE_RRHH_URL=postgres://x@localhost/rrhh",
		"ANUENCIA_TEST_ANYTHING=1", "HOME=/nowhere",
	}
	c, err := config.Load(file, env, map[string]string{"listen": "127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "127.0.0.1:3" || c.Language != "en" || len(c.CORSOrigins) != 2 || c.Timezone != "America/Lima" {
		t.Fatalf("%+v", c)
	}
	if c.DatabaseURL.Reveal() != "postgres://app:pw@localhost/db" || c.Sources["rrhh"].Reveal() != "postgres://x@localhost/rrhh" {
		t.Fatal("values from a file or a named source are lost")
	}
}

func TestSecretsDoNotShow(t *testing.T) {
	t.Parallel()
	c, err := config.Load("", []string{"ANUENCIA_DATABASE_URL=postgres://app:hunter2@localhost/db"}, map[string]string{"demo": "true"})
	if err != nil {
		t.Fatal(err)
	}
	j, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{string(j), fmt.Sprint(c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), c.DatabaseURL.LogValue().String()} {
		if strings.Contains(shown, "hunter2") {
			t.Fatalf("shown: %s", shown)
		}
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	file := write(t, "a.yaml", "nada: 1\nlog_level: loud\n")
	env := []string{
		"ANUENCIA_REDIS_URL=redis://x", "ANUENCIA_DATABASE_URL=mysql://u:hunter2@h/d", "ANUENCIA_DATABASE_URL_FILE=/x", "ANUENCIA_DEMO=perhaps",
	}
	_, err := config.Load(file, env, map[string]string{"listen": "0.0.0.0:80", "timezone": "Mars/Base"})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{"nada", "log_level", "ANUENCIA_REDIS_URL", "database_url: postgres", "_FILE", "ANUENCIA_DEMO", "tls_terminated", "Mars/Base"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Fatalf("a secret is shown: %v", err)
	}
}

// TestNothingIsSilentlyIgnored: a value that cannot be one would leave the server
// on another database than was meant.
func TestNothingIsSilentlyIgnored(t *testing.T) {
	t.Parallel()
	empty := write(t, "empty", "\n")
	for name, c := range map[string]struct {
		file string
		env  []string
		want string
	}{
		"a mapping":         {file: write(t, "a.yaml", "database_url: {url: postgres://x/y}\n"), want: "database_url: a value is expected"},
		"an empty file":     {env: []string{"ANUENCIA_DATABASE_URL_FILE=" + empty}, want: "the file is empty"},
		"a broken source":   {env: []string{"ANUENCIA_SOURCE_RRHH_URL=garbage:%%"}, want: "source_rrhh_url"},
		"a foreign source":  {env: []string{"ANUENCIA_SOURCE_RRHH_URL=mysql://h/d"}, want: "source_rrhh_url"},
		"a source of blank": {env: []string{"ANUENCIA_SOURCE_RRHH_URL="}, want: "source_rrhh_url"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := config.Load(c.file, c.env, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("err = %v", err)
			}
		})
	}
	c, err := config.Load("", nil, map[string]string{"demo": "true", "tls_cert": empty, "tls_key": empty})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.CheckServe(); err == nil || !strings.Contains(err.Error(), "tls_cert") {
		t.Fatalf("an unreadable certificate: %v", err)
	}
}

func TestAServerNeedsACatalog(t *testing.T) {
	t.Parallel()
	for flag, ok := range map[string]bool{"demo": true, "migrate": false} {
		c, err := config.Load("", nil, map[string]string{flag: "true"})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.CheckServe(); (err == nil) != ok {
			t.Errorf("%s: %v", flag, err)
		}
	}
}

func TestWhereItMayListen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags map[string]string
		ok    bool
	}{
		"demo on loopback":    {map[string]string{"demo": "true"}, true},
		"demo on ::1":         {map[string]string{"demo": "true", "listen": "[::1]:0"}, true},
		"demo for everyone":   {map[string]string{"demo": "true", "listen": ":8080", "tls_terminated": "true"}, false},
		"plaintext":           {map[string]string{"catalog": "c", "listen": "10.0.0.1:80"}, false},
		"behind a terminator": {map[string]string{"catalog": "c", "listen": "10.0.0.1:80", "tls_terminated": "true"}, true},
		"with TLS":            {map[string]string{"catalog": "c", "listen": ":443", "tls_cert": "a", "tls_key": "b"}, true},
		"half of TLS":         {map[string]string{"catalog": "c", "tls_cert": "a"}, false},
		"no port":             {map[string]string{"demo": "true", "listen": "localhost"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := config.Load("", nil, c.flags); (err == nil) != c.ok {
				t.Fatalf("err = %v", err)
			}
		})
	}
}
