package egress_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/internal/audit"
	"github.com/anuencia-harness/anuencia/internal/egress"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func canonical(t rapid.TB, v any) string {
	t.Helper()
	text, err := audit.CanonicalOf(v)
	if err != nil {
		t.Fatalf("canonical: %v", err)
	}
	return text
}

func inspect(t rapid.TB, v any, mask ...string) (string, []harness.Redaction) {
	t.Helper()
	out, cut, err := egress.New().Inspect(canonical(t, v), mask)
	if err != nil {
		t.Fatalf("inspect: %v", err)
	}
	return out, cut
}

const (
	pemKey    = "-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIBadoXwF0secretsecret\nAwEHoUQDQgAE\n-----END EC PRIVATE KEY-----"
	goTrace   = "panic: runtime error\n\ngoroutine 1 [running]:\nmain.run(0xc000012345)\n\t/home/op/src/main.go:42 +0x1d\nmain.main()\n\t/home/op/src/main.go:12 +0x25"
	pyTrace   = "Traceback (most recent call last):\n  File \"/srv/app/x.py\", line 3, in <module>\n    run()\nValueError: secreto_interno"
	javaTrace = "java.lang.IllegalStateException: detalle_interno\n\tat pe.edu.App.run(App.java:14)\n\tat pe.edu.App.main(App.java:3)"
)

// secrets are what must not survive: what is planted, the part that must be
// gone, and the rule.
func secrets() [][3]string {
	return [][3]string{
		{pemKey, "MHcCAQEEIBadoXwF0secretsecret", "private_key"},
		{"-----BEGIN PRIVATE KEY-----\nMIIEcut0ff", "MIIEcut0ff", "private_key"},
		{"anu_" + strings.Repeat("0f", 36), strings.Repeat("0f", 36), "anuencia_token"},
		{"AKIAIOSFODNN7EXAMPLE", "AKIAIOSFODNN7EXAMPLE", "aws_key"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjMifQ.c2lnbmF0dXJl", "c2lnbmF0dXJl", "jwt"},
		{"Authorization: Bearer abcDEF0123456789abcdef", "abcDEF0123456789abcdef", "bearer"},
		{"ghp_" + strings.Repeat("a1B2", 9), strings.Repeat("a1B2", 9), "api_token"},
		{"123456789:" + strings.Repeat("Ab_-1", 7), strings.Repeat("Ab_-1", 7), "bot_token"},
		{"postgres://anuencia:s3cr3t@db.example.org/app", "s3cr3t", "url_credentials"},
		{"redis://:s3cr3tpw@cache.example.org:6379/0", "s3cr3tpw", "url_credentials"},
		{"clave_anu_" + strings.Repeat("1e", 36), strings.Repeat("1e", 36), "anuencia_token"},
		{"KEY_AKIAIOSFODNN7EXAMPL2", "AKIAIOSFODNN7EXAMPL2", "aws_key"},
		{"PGPASSWORD=hunter3 psql", "hunter3", "password"},
		{"contrasena=hunter4", "hunter4", "password"},
		{"?token=a1b2c3d4e5", "a1b2c3d4e5", "password"},
		{"Server=db;User Id=sa;Password=s3cr3t!;", "s3cr3t!", "password"},
		{"host=db password=hunter2 user=app", "hunter2", "password"},
		{"api_key: 9f8e7d6c5b4a", "9f8e7d6c5b4a", "password"},
		{"/etc/anuencia/config.yaml", "anuencia/config", "internal_path"},
		{"/home/op/.ssh/id_ed25519", "id_ed25519", "internal_path"},
		{`C:\Users\op\secreto.txt`, "secreto.txt", "internal_path"},
		{`\\servidor\compartido\acta.doc`, "compartido", "internal_path"},
		{"file:///srv/datos/x.db", "srv/datos", "internal_path"},
		{"10.20.30.40", "10.20.30.40", "internal_address"},
		{"172.16.0.9:5432", "172.16.0.9", "internal_address"},
		{"192.168.1.7", "192.168.1.7", "internal_address"},
		{"127.0.0.1", "127.0.0.1", "internal_address"},
		{"fd12:3456:789a::1", "fd12:3456:789a", "internal_address"},
		{"http://localhost:8080/x", "localhost", "internal_address"},
		{"db-1.prod.internal", "prod.internal", "internal_address"},
		{goTrace, "main.go", "stack_trace"},
		{pyTrace, "secreto_interno", "stack_trace"},
		{javaTrace, "App.java", "stack_trace"},
	}
}

func TestEachSecretIsCut(t *testing.T) {
	t.Parallel()
	for _, s := range secrets() {
		t.Run(s[2]+" "+s[1], func(t *testing.T) {
			t.Parallel()
			for _, around := range [][2]string{{"", ""}, {"Antes: ", " y después."}, {"(", ")"}, {"línea\n", "\n\notra"}} {
				out, cut := inspect(t, map[string]any{"filas": []any{map[string]any{"nota": around[0] + s[0] + around[1]}}})
				if strings.Contains(out, s[1]) {
					t.Fatalf("survived: %s", out)
				}
				if len(cut) == 0 || cut[0].Path != "/filas/0/nota" {
					t.Fatalf("reported %v", cut)
				}
				found := false
				for _, c := range cut {
					found = found || c.Rule == s[2]
				}
				if !found {
					t.Fatalf("%s is not among %v", s[2], cut)
				}
			}
		})
	}
}

// innocent is what users read every day.
func innocent() []string {
	return []string{
		"El estudiante 2023-114 está matriculado en MAT-101 (Cálculo I) con nota 14.5 y/o 15,00.",
		"Artículo 5.2.1. La clave: estudiar. Contraseña olvidada: acuda a la oficina.",
		"Véase https://www.universidad.edu.pe/home/reglamentos/2024/becas?pagina=2&orden=asc#art-5 y http://example.org/etc/x.",
		"Escriba a registro@universidad.edu.pe o llame al 01:30 p. m., horario 08:00-16:30; versión 10.2.3.",
		"El secreto profesional y la contraseña son personales. Ruta: Lima / Cusco / Puno.",
		"Monto S/ 10000.50, proporción 3:1, 12/12/2026, «ñandú», 日本語, مرحبا, 🙂👍🏽.",
		"IP pública 200.48.225.130 y DNS 8.8.8.8; tel. 10.10.10",
		"a = b; total=15; nota=18 <b>no es html</b> & \"comillas\"",
		"Bearer es una palabra inglesa. at the end (of line)",
	}
}

func TestOrdinaryTextIsIntact(t *testing.T) {
	t.Parallel()
	for _, text := range innocent() {
		in := map[string]any{"resultados": []any{text}, "nota": 14.5, "vacio": nil, "si": true}
		out, cut := inspect(t, in)
		if out != canonical(t, in) || len(cut) != 0 {
			t.Errorf("changed by %v: %s", cut, out)
		}
	}
}

// TestNoPlantedSecretSurvives among any innocent text, at any depth, and what
// was innocent beside it stays.
func TestNoPlantedSecretSurvives(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom(innocent()), 0, 3)
		var text []string
		var gone []string
		for range rapid.IntRange(1, 4).Draw(t, "plants") {
			s := rapid.SampledFrom(secrets()).Draw(t, "secret")
			text = append(append(text, words.Draw(t, "words")...), s[0])
			gone = append(gone, s[1])
		}
		sep := rapid.SampledFrom([]string{" ", "\n\n", " (", ", "}).Draw(t, "separator")
		beside := rapid.SampledFrom(innocent()).Draw(t, "beside")
		v := any(strings.Join(text, sep))
		if rapid.Bool().Draw(t, "list") {
			v = []any{v, 1, nil}
		}
		in := map[string]any{"a": map[string]any{"b": v}, "beside": beside}
		if rapid.Bool().Draw(t, "in a name") {
			in[strings.Join(text, sep)] = 1
		}
		out, cut := inspect(t, in)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if got["beside"] != beside {
			t.Fatalf("what stood beside changed: %v", got["beside"])
		}
		report := canonical(t, cut)
		for _, g := range gone {
			encoded := strings.Trim(canonical(t, g), `"`)
			if strings.Contains(out, encoded) || strings.Contains(report, encoded) {
				t.Fatalf("%q survived in %s or %s", g, out, report)
			}
		}
		again, cutAgain, err := egress.New().Inspect(out, nil)
		if err != nil || again != out || len(cutAgain) != 0 {
			t.Fatalf("guarding twice changed %s to %s (%v, %v)", out, again, cutAgain, err)
		}
	})
}

func TestMasks(t *testing.T) {
	t.Parallel()
	in := map[string]any{
		"filas": []any{map[string]any{"nota": 11, "curso": "MAT"}, map[string]any{"nota": 12, "curso": "FIS"}},
		"a/b":   map[string]any{"~x": "v"}, "interno": []any{1, 2},
	}
	for mask, want := range map[string]string{
		"/filas/*/nota": `{"a/b":{"~x":"v"},"filas":[{"curso":"MAT","nota":"[redactado]"},{"curso":"FIS","nota":"[redactado]"}],"interno":[1,2]}`,
		"/filas/1":      `{"a/b":{"~x":"v"},"filas":[{"curso":"MAT","nota":11},"[redactado]"],"interno":[1,2]}`,
		"/a~1b/~0x":     `{"a/b":{"~x":"[redactado]"},"filas":[{"curso":"MAT","nota":11},{"curso":"FIS","nota":12}],"interno":[1,2]}`,
		"/interno":      `{"a/b":{"~x":"v"},"filas":[{"curso":"MAT","nota":11},{"curso":"FIS","nota":12}],"interno":"[redactado]"}`,
		"/no/existe":    canonical(t, in),
		"":              `{}`,
	} {
		out, cut := inspect(t, in, mask)
		if out != want {
			t.Errorf("mask %q gave %s", mask, out)
		}
		if (len(cut) == 0) != (mask == "/no/existe") {
			t.Errorf("mask %q reported %v", mask, cut)
		}
		for _, c := range cut {
			if c.Rule != egress.RuleMask {
				t.Errorf("mask %q reported %v", mask, c)
			}
		}
	}
}

func TestWhatCannotBeGuardedDoesNotLeave(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{``, `null`, `[1]`, `"x"`, `{`, `{"a":1} x`, `{"a":1,"a":"anu_` + strings.Repeat("0", 40) + `"}`} {
		out, _, err := egress.New().Inspect(bad, nil)
		if err == nil {
			t.Errorf("%q left as %q", bad, out)
		}
	}
	if _, _, err := egress.New().Inspect(`{}`, []string{"filas"}); err == nil {
		t.Error("a mask that is no pointer was accepted")
	}
}

// TestALargeTableIsGuardedWhole: the limits of intake are not those of a result.
func TestALargeTableIsGuardedWhole(t *testing.T) {
	t.Parallel()
	rows := make([]any, 8000)
	for i := range rows {
		rows[i] = map[string]any{"n": i, "curso": "MAT-101"}
	}
	rows[7999] = map[string]any{"n": 7999, "curso": "AKIAIOSFODNN7EXAMPLE"}
	out, cut := inspect(t, map[string]any{"filas": rows})
	want := harness.Redaction{Rule: "aws_key", Path: "/filas/7999/curso"}
	if len(cut) != 1 || cut[0] != want || strings.Count(out, "MAT-101") != 7999 || strings.Contains(out, "AKIA") {
		t.Fatalf("cut %v", cut)
	}
}

func TestLongTextIsCutAtACharacter(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{"", "x", "xx", "xxx"} {
		out, cut := inspect(t, map[string]any{"t": extra + strings.Repeat("ñ", 8<<10)})
		var got struct{ T string }
		if err := json.Unmarshal([]byte(out), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.T) > egress.MaxText || !strings.HasSuffix(got.T, "ñ"+egress.Marker) || strings.ContainsRune(got.T, '\uFFFD') {
			t.Fatalf("%d bytes, ending %q", len(got.T), got.T[len(got.T)-20:])
		}
		if len(cut) != 1 || cut[0] != (harness.Redaction{Rule: egress.RuleOversize, Path: "/t"}) {
			t.Fatalf("reported %v", cut)
		}
	}
	whole := map[string]any{"t": strings.Repeat("x", egress.MaxText)}
	if out, cut := inspect(t, whole); out != canonical(t, whole) || cut != nil {
		t.Fatalf("a text of exactly the limit was cut: %v", cut)
	}
}

func TestFieldsThatNameASecret(t *testing.T) {
	t.Parallel()
	out, cut := inspect(t, map[string]any{"password": "x", "Api-Key": 7, "contraseña": "y", "clientSecret": []any{"z"}, "clave": "curso", "authorization": nil})
	want := `{"Api-Key":"[redactado]","authorization":null,"clave":"curso","clientSecret":["[redactado]"],"contraseña":"[redactado]","password":"[redactado]"}`
	if out != want || len(cut) != 4 {
		t.Fatalf("%s %v", out, cut)
	}
}

func FuzzInspect(f *testing.F) {
	for _, s := range secrets() {
		f.Add(s[0], "/x")
	}
	for _, s := range innocent() {
		f.Add(s, "/y/*/z")
	}
	f.Fuzz(func(t *testing.T, text, mask string) {
		planted := "anu_" + strings.Repeat("9", 72)
		raw, err := json.Marshal(map[string]any{"x": text + " " + planted + " " + text, text: []any{text}})
		if err != nil {
			t.Skip("no text that can be planted in")
		}
		out, cut, err := egress.New().Inspect(string(raw), []string{mask})
		if err != nil {
			return // nothing leaves
		}
		if strings.Contains(out, planted) || len(cut) == 0 {
			t.Fatalf("survived: %q", out)
		}
		again, _, err := egress.New().Inspect(out, nil)
		if err != nil || again != out {
			t.Fatalf("not stable: %q, then %q (%v)", out, again, err)
		}
	})
}

func BenchmarkInspect(b *testing.B) {
	rows := make([]any, 10)
	for i := range rows {
		rows[i] = map[string]any{"estudiante": "Lucía Quispe Rojas", "curso_nombre": "Fundamentos de Programación", "curso": "PRO-110", "nota": 17}
	}
	raw, err := json.Marshal(map[string]any{"filas": rows})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, _, err := egress.New().Inspect(string(raw), nil); err != nil {
			b.Fatal(err)
		}
	}
}
