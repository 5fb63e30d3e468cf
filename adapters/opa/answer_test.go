package opa_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/fstest"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/opa"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

func TestNoUsableAnswer(t *testing.T) {
	t.Parallel()
	high := `{"allow": true, "policy_id": "x", "risk_level": "high", "approval": %s}`
	critical := `{"allow": true, "policy_id": "x", "risk_level": "critical", "approval": %s}`
	one := `"stages": [{"roles": ["r"], "quorum": 1}]`
	rows := map[string]struct {
		decision string
		want     error
	}{
		"undefined":           {`{"allow": true} if input.stage == "x"`, opa.ErrUndefined},
		"no object":           {`true`, opa.ErrMalformed},
		"empty":               {`{}`, opa.ErrMalformed},
		"allow is text":       {`{"allow": "true", "policy_id": "x", "risk_level": "medium"}`, opa.ErrMalformed},
		"allow is missing":    {`{"policy_id": "x", "risk_level": "medium"}`, opa.ErrMalformed},
		"no policy_id":        {`{"allow": false}`, opa.ErrMalformed},
		"unknown key":         {`{"allow": true, "policy_id": "x", "risk_level": "medium", "extra": 1}`, opa.ErrMalformed},
		"unknown code":        {`{"allow": false, "policy_id": "x", "code": "NO"}`, opa.ErrMalformed},
		"code with allow":     {`{"allow": true, "policy_id": "x", "risk_level": "medium", "code": "TIMEOUT"}`, opa.ErrMalformed},
		"no risk":             {`{"allow": true, "policy_id": "x"}`, opa.ErrMalformed},
		"strange risk":        {`{"allow": true, "policy_id": "x", "risk_level": "none"}`, opa.ErrMalformed},
		"silently lowered":    {`{"allow": true, "policy_id": "x", "risk_level": "low"}`, opa.ErrMalformed},
		"approval at medium":  {`{"allow": true, "policy_id": "x", "risk_level": "medium", "approval": {"four_eyes": true, ` + one + `}}`, opa.ErrMalformed},
		"high, no approval":   {`{"allow": true, "policy_id": "x", "risk_level": "high"}`, opa.ErrMalformed},
		"high, no stages":     {fmt.Sprintf(high, `{"four_eyes": true, "stages": []}`), opa.ErrMalformed},
		"high, quorum 0":      {fmt.Sprintf(high, `{"four_eyes": true, "stages": [{"roles": ["r"], "quorum": 0}]}`), opa.ErrMalformed},
		"high, half a person": {fmt.Sprintf(high, `{"four_eyes": true, "stages": [{"roles": ["r"], "quorum": 1.5}]}`), opa.ErrMalformed},
		"high, a crowd":       {fmt.Sprintf(high, `{"four_eyes": true, "stages": [{"roles": ["r"], "quorum": 1000000}]}`), opa.ErrMalformed},
		"high, no roles":      {fmt.Sprintf(high, `{"four_eyes": true, "stages": [{"roles": [], "quorum": 1}]}`), opa.ErrMalformed},
		"high, two eyes":      {fmt.Sprintf(high, `{"four_eyes": false, `+one+`}`), opa.ErrMalformed},
		"critical, alone":     {fmt.Sprintf(critical, `{"four_eyes": true, `+one+`}`), opa.ErrMalformed},
		"channel":             {fmt.Sprintf(high, `{"four_eyes": true, "channels": ["cli"], `+one+`}`), opa.ErrMalformed},
		"expiry":              {fmt.Sprintf(high, `{"four_eyes": true, "expires_in": "3 days", `+one+`}`), opa.ErrMalformed},
		"reminder":            {fmt.Sprintf(high, `{"four_eyes": true, "remind_after": "-1h", `+one+`}`), opa.ErrMalformed},
		"escalation":          {fmt.Sprintf(high, `{"four_eyes": true, "escalate": {"after": "x", "roles": []}, `+one+`}`), opa.ErrMalformed},
		"warning":             {`{"allow": true, "policy_id": "x", "risk_level": "medium", "warnings": [{"code": "x", "severity": "loud"}]}`, opa.ErrMalformed},
		"mask":                {`{"allow": true, "policy_id": "x", "risk_level": "medium", "mask": ["x"]}`, opa.ErrMalformed},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, err := engine(t, "decision := "+row.decision).Decide(t.Context(), plain())
			if !errors.Is(err, row.want) {
				t.Errorf("error %v, want %v", err, row.want)
			}
			if d.Allow {
				t.Error("no answer became a permission")
			}
		})
	}
}

func TestWholeAnswers(t *testing.T) {
	t.Parallel()
	d, err := engine(t, `decision := {"allow": true, "policy_id": "x", "risk_level": "low", "lowered_by": "y", "reason": ["y"]}`).
		Decide(t.Context(), plain())
	if err != nil || !d.Allow || d.Risk != anuencia.RiskLow {
		t.Errorf("lowered by a rule that says so: %+v, %v", d, err)
	}
	d, err = engine(t, `decision := {"allow": false, "policy_id": "x", "code": "TOOL_NOT_ALLOWED"}`).Decide(t.Context(), plain())
	if err != nil || d.Allow || d.Code != anuencia.CodeToolNotAllowed {
		t.Errorf("denied with a code: %+v, %v", d, err)
	}
	d, err = engine(t, `decision := {"allow": true, "policy_id": "x", "risk_level": "critical", "approval": {
		"four_eyes": true, "stages": [{"roles": ["r"], "quorum": 2}], "escalate": {"after": "4h", "roles": ["jefe"]}}}`).
		Decide(t.Context(), plain())
	if err != nil || d.Approval.EscalateAfter != 4*time.Hour || d.Approval.People() != 2 {
		t.Errorf("escalation: %+v, %v", d, err)
	}
	in := plain()
	in.Stage = anuencia.PolicyOutput
	if _, err = engine(t, `decision := {"allow": true, "policy_id": "x", "approval": {}}`).Decide(t.Context(), in); !errors.Is(err, opa.ErrMalformed) {
		t.Errorf("an approval at the output: %v", err)
	}
}

func TestBuiltinErrorIsNoAnswer(t *testing.T) {
	t.Parallel()
	e := engine(t, `decision := {"allow": true, "policy_id": "x", "risk_level": "medium"} if not to_number(input.intent.name) == 1`)
	d, err := e.Decide(t.Context(), plain())
	if err == nil || d.Allow {
		t.Errorf("a failing built-in under not became %+v, %v", d, err)
	}
}

func TestTwoAnswersAreNone(t *testing.T) {
	t.Parallel()
	e := engine(t, "decision := {\"allow\": true, \"policy_id\": \"x\", \"risk_level\": \"medium\"} if input.stage\n\n"+
		"decision := {\"allow\": false, \"policy_id\": \"y\"} if input.stage")
	if d, err := e.Decide(t.Context(), plain()); err == nil || d.Allow {
		t.Errorf("a conflict became %+v, %v", d, err)
	}
}

func TestSlowPolicyIsLate(t *testing.T) {
	t.Parallel()
	slow := `decision := {"allow": true, "policy_id": "x", "risk_level": "medium"} if {
	some a in numbers.range(1, 3000)
	some b in numbers.range(1, 3000)
	some c in numbers.range(1, 3000)
	a + b + c == 0
}`
	e, err := opa.New(t.Context(), rego(slow), opa.Options{Timeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := e.Decide(t.Context(), plain()); !errors.Is(err, opa.ErrLate) || d.Allow {
		t.Errorf("a slow policy gave %+v, %v", d, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if d, err := e.Decide(ctx, plain()); !errors.Is(err, opa.ErrLate) || d.Allow {
		t.Errorf("an ended context gave %+v, %v", d, err)
	}
}

func TestBrokenInputIsNoAnswer(t *testing.T) {
	t.Parallel()
	in := plain()
	in.Input = `{"a":`
	e := engine(t, `decision := {"allow": true, "policy_id": "x", "risk_level": "medium"}`)
	if d, err := e.Decide(t.Context(), in); err == nil || d.Allow {
		t.Errorf("broken input gave %+v, %v", d, err)
	}
}

func TestRefusedPolicies(t *testing.T) {
	t.Parallel()
	rows := map[string]string{
		"network":        `decision := http.send({"method": "get", "url": "http://localhost"})`,
		"name look-up":   `decision := net.lookup_ip_addr("localhost")`,
		"process":        `decision := opa.runtime()`,
		"clock":          `decision := time.now_ns()`,
		"chance":         `decision := rand.intn("x", 10)`,
		"identifiers":    `decision := uuid.rfc4122("x")`,
		"syntax":         `decision := {`,
		"old syntax":     `decision = {"allow": true} { input.x }`,
		"unused":         "decision := {\"allow\": true} if {\n\tx := 1\n}",
		"unknown":        `decision := nothing`,
		"no decision":    `other := true`,
		"recursion":      "decision := a\n\na := b\n\nb := a",
		"other package":  "",
		"shadowed input": "decision := x if {\n\tinput := 1\n\tx := input\n}",
	}
	for name, body := range rows {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := opa.New(t.Context(), rego(body), opa.Options{}); err == nil {
				t.Error("the policy was taken")
			}
		})
	}
	if _, err := opa.New(t.Context(), fstest.MapFS{"a.txt": {Data: []byte("x")}}, opa.Options{}); err == nil {
		t.Error("a folder without policies was taken")
	}
}
