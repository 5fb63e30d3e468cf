package sqltool_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/tools/sqltool"
	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/anuenciatest"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

// rows runs a view and gives its rows.
func rows(t *testing.T, w *world, query string, args map[string]any) []map[string]any {
	t.Helper()
	res, err := w.view.Run(t.Context(), viewCall(t, query, 100, args))
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	var got struct{ Filas []map[string]any }
	if err := json.Unmarshal([]byte(res.Result), &got); err != nil {
		t.Fatal(err)
	}
	return got.Filas
}

func TestAViewReadsAndCitesItsSource(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := w.call(t, "matricula.consultar", `{"estudiante_id":"2023-114"}`)
		res, err := w.view.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(res.Result, `{"carrera":"Ingeniería de Sistemas","creditos":5,"curso":"MAT-101","curso_nombre":"Cálculo I",`+
			`"estudiante":"Lucía Quispe Rojas","estudiante_id":"2023-114","nota":14,"periodo":"2026-1"}`) {
			t.Fatalf("result: %s", res.Result)
		}
		text, err := audit.Canonical([]byte(res.Result))
		if err != nil || text != res.Result {
			t.Fatalf("not canonical: %v", err)
		}
		list := strings.TrimSuffix(strings.TrimPrefix(res.Result, `{"filas":`), `}`)
		want := anuencia.Source{Type: "sql_view", ID: "v_matricula", Ref: "institution.v_matricula", Hash: audit.Digest(list)}
		if len(res.Sources) != 1 || res.Sources[0] != want || len(res.Warnings) != 0 {
			t.Fatalf("sources %+v, warnings %+v", res.Sources, res.Warnings)
		}
		if before, err := w.view.Before(t.Context(), c); before != "" || err != nil {
			t.Fatalf("before %q, %v", before, err)
		}
		res, err = w.view.Run(t.Context(), w.call(t, "matricula.consultar", `{"estudiante_id":"1999-999"}`))
		if err != nil || res.Result != `{"filas":[]}` || len(res.Warnings) != 1 || res.Warnings[0].Code != "no_results" {
			t.Fatalf("nobody: %+v, %v", res, err)
		}
	})
}

// TestTenThousandRowsAreCut at max_rows, with a warning, in the query's order.
func TestTenThousandRowsAreCut(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		const many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 10000) select i from n order by i desc -- all"
		res, err := w.view.Run(t.Context(), viewCall(t, many, 3, nil))
		if err != nil {
			t.Fatal(err)
		}
		if res.Result != `{"filas":[{"i":10000},{"i":9999},{"i":9998}]}` {
			t.Fatalf("rows: %s", res.Result)
		}
		if len(res.Warnings) != 1 || res.Warnings[0].Code != "partial_result" || res.Warnings[0].Severity != anuencia.SeverityWarning {
			t.Fatalf("warnings: %+v", res.Warnings)
		}
		// Wider than what a caller may send: the limits of intake are not those of a result.
		wide := strings.Replace(many, "select i from", "select i, i as j, i as k from", 1)
		res, err = w.view.Run(t.Context(), viewCall(t, wide, 10_000, nil))
		if err != nil || len(res.Warnings) != 0 || strings.Count(res.Result, `"i"`) != 10_000 {
			t.Fatalf("exactly the maximum: %+v, %v", res.Warnings, err)
		}
	})
}

// TestHostileValuesAreValues: whatever is passed comes back as it was, and
// nothing else happens.
func TestHostileValuesAreValues(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		for _, v := range []string{
			`'; drop table becas; --`, `" or ""="`, `' or '1'='1`, `\`, `\'`, `$1`, `:v`, `?1`, `%`, `$$`, "/* */", "línea\nnueva", "ñandú 🙂 مرحبا", ``, `{"a":1}`,
			strings.Repeat("x", 100_000),
		} {
			got := rows(t, w, "select cast(:v as text) as v, 'a :v b' as literal where :v = cast(:v as text)", map[string]any{"v": v})
			if len(got) != 1 || got[0]["v"] != v || got[0]["literal"] != "a :v b" {
				t.Fatalf("%q came back as %v", v, got)
			}
		}
		if n := w.count(t, "select count(*) from becas"); n != 1 {
			t.Fatalf("%d grants", n)
		}
	})
}

func TestParametersAreFoundWhereTheyAre(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		args := map[string]any{"a": "A", "b1": 2}
		want := map[string]string{
			`select cast(:a as text) as x`:                                        "A",
			`select ':a' as x`:                                                    ":a",
			`select 'it''s :a' as x`:                                              "it's :a",
			`select cast(:a as text)||':a'||cast(:a as text) as x`:                "A:aA",
			"select cast(:a as text) -- :zz 'it\n as x -- :end":                   "A",
			`select /* ' :zz */ cast(:a as text) as x`:                            "A",
			`select cast(cast(:b1 as integer) + 1 as text) as x;`:                 "3",
			`select x from (select ':' as ":a", cast(:a as text) as x)` + ` as t`: "A",
		}
		if w.postgres {
			want[`select :a::text as x`] = "A"
			want[`select (:b1::int4 * 2)::text as x`] = "4"
			want[`select E'\' :a' || $$ :a $$ || $t$ :a $$ $t$ as x`] = "' :a :a  :a $$ "
			want[`select /* a /* :b */ ' */ :a::text as x`] = "A"
			want[`select (array['p','q','r'])[2:3]::text as x`] = "{q,r}"
		} else {
			want["select [a:b] as x from (select 'A' as [a:b])"] = "A"
			want["select `:a` as x from (select 'A' as `:a`)"] = "A"
			want[`select '\' || cast(:a as text) as x`] = `\A`
		}
		for query, x := range want {
			got := rows(t, w, query, args)
			if len(got) != 1 || got[0]["x"] != x {
				t.Errorf("%s gave %v instead of %q", query, got, x)
			}
		}
	})
}

func TestAViewCannotWriteAndIsOneStatement(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		for _, query := range []string{
			"delete from becas", "insert into becas values ('2023-114', 1, 'x') returning monto",
			"select 1 as a) as t; delete from becas; select * from (select 1 as a",
			"select 1 as a; delete from becas", "select 1 as a; select 2 as b",
			"select 'open", "select 1 /* open", `select "open`,
			"select cast(:nobody as text) as x", "select no_such_column as x from becas", "",
		} {
			if res, err := w.view.Run(t.Context(), viewCall(t, query, 10, nil)); err == nil {
				t.Errorf("%s gave %s", query, res.Result)
			}
		}
		if n := w.count(t, "select count(*) from becas"); n != 1 {
			t.Fatalf("%d grants", n)
		}
	})
}

func TestValuesHaveAnExactForm(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		query := `select 9007199254740993 as big, 9007199254740991 as exact, 1.5 as f, null as nada, cast(x'00ff' as blob) as bytes`
		want := `{"filas":[{"big":"9007199254740993","bytes":"AP8=","exact":9007199254740991,"f":1.5,"nada":null}]}`
		if w.postgres {
			query = `select 9007199254740993 as big, 9007199254740991 as exact, 1.5::float8 as f, null as nada, '\x00ff'::bytea as bytes,
				'NaN'::float8 as nan, 1.10::numeric as n, date '2026-03-02' as d, timestamptz '2026-03-02 10:00:00.5-05' as ts, true as si, '{"a":1}'::jsonb as j`
			want = `{"filas":[{"big":"9007199254740993","bytes":"AP8=","d":"2026-03-02","exact":9007199254740991,"f":1.5,"j":"{\"a\": 1}",` +
				`"n":"1.10","nada":null,"nan":"NaN","si":true,"ts":"2026-03-02T15:00:00.5Z"}]}`
		}
		res, err := w.view.Run(t.Context(), viewCall(t, query, 10, nil))
		if err != nil || res.Result != want {
			t.Fatalf("%s\n%v", res.Result, err)
		}
	})
}

// TestASlowQueryIsStopped at the tool's own timeout, and the source works on.
func TestASlowQueryIsStopped(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		c := viewCall(t, "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) as n from n", 10, nil)
		c.Tool.Timeout = 50 * time.Millisecond
		direct := agent.NewDirect(map[string]agent.Tool{sqltool.KindView: w.view})
		cat := &anuenciatest.Catalog{Tools: map[string]anuencia.Tool{c.Tool.Name: c.Tool}}
		e := anuencia.Execution{ID: c.ExecutionID, Step: anuencia.Step{Number: 1, Tool: c.Tool.Name, Arguments: "{}"}}
		_, err := direct.Run(t.Context(), cat, e)
		if !errors.Is(err, anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool)) {
			t.Fatalf("slow query: %v", err)
		}
		if got := rows(t, w, "select 1 as a", nil); len(got) != 1 {
			t.Fatalf("after it: %v", got)
		}
	})
}

func TestASnapshotReadsSeveralQueries(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		t.Helper()
		queries := map[string]string{
			"estudiante": "select nombre from estudiantes where estudiante_id = :id",
			"cursos":     "select curso from matriculas where estudiante_id = :id order by curso",
		}
		got, err := w.sources.Snapshot(t.Context(), "institution", queries, `{"id":"2020-001"}`, 10)
		if err != nil || len(got["estudiante"]) != 1 || got["estudiante"][0]["nombre"] != "Martín Núñez Peña" || len(got["cursos"]) != 3 {
			t.Fatalf("%v, %v", got, err)
		}
		if _, err := w.sources.Snapshot(t.Context(), "institution", queries, `{"id":"2020-001"}`, 2); err == nil {
			t.Fatal("more rows than allowed")
		}
		if _, err := w.sources.Snapshot(t.Context(), "nobody", queries, `{"id":"1"}`, 2); err == nil {
			t.Fatal("an unknown source")
		}
	})
}
