package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/agent"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// shelf is a catalog with one agent and one tool.
type shelf struct {
	harness.Catalog
	agent   anuencia.Agent
	tool    anuencia.Tool
	refusal error // of the arguments
}

func (s shelf) Agent(name string) (anuencia.Agent, bool) { return s.agent, name == s.agent.Name }

func (s shelf) Tool(name string) (anuencia.Tool, bool) { return s.tool, name == s.tool.Name }

func (s shelf) ValidateArguments(_ anuencia.Tool, args []byte) (string, error) {
	return string(args), s.refusal
}

// hand is a tool whose acts are given.
type hand struct {
	before func(context.Context, agent.Call) (string, error)
	run    func(context.Context, agent.Call) (harness.StepResult, error)
}

func (h hand) Before(ctx context.Context, c agent.Call) (string, error) {
	if h.before == nil {
		return "", nil
	}
	return h.before(ctx, c)
}

func (h hand) Run(ctx context.Context, c agent.Call) (harness.StepResult, error) {
	return h.run(ctx, c)
}

// book is a hand that keeps a ledger.
type book struct {
	hand
	look func(context.Context, agent.Call) (harness.StepResult, bool, error)
}

func (b book) Look(ctx context.Context, c agent.Call) (harness.StepResult, bool, error) {
	return b.look(ctx, c)
}

func catalogOf(change func(*shelf)) shelf {
	s := shelf{
		agent: anuencia.Agent{Name: "registro", Runner: "direct", Tools: []string{"nota.actualizar"}, Roles: []string{"registro"}},
		tool:  anuencia.Tool{Name: "nota.actualizar", Kind: "k", Risk: anuencia.RiskHigh, Timeout: time.Minute, Digest: "d1", Effect: true},
	}
	if change != nil {
		change(&s)
	}
	return s
}

func execution() anuencia.Execution {
	return anuencia.Execution{
		ID: anuencia.ExecutionID(uuid.New()), Input: `{"nota":15}`,
		Actor: anuencia.Actor{Person: anuencia.Person{Roles: []string{"registro"}}},
		Step:  anuencia.Step{Number: 1, Tool: "nota.actualizar", ToolDigest: "d1", Arguments: `{"nota":15}`, Before: `[{"nota":14}]`, Effect: true},
	}
}

func intent() anuencia.Intent {
	return anuencia.Intent{Name: "nota.modificar", Agent: "registro", Tool: "nota.actualizar"}
}

func runner(t agent.Tool) *agent.Direct { return agent.NewDirect(map[string]agent.Tool{"k": t}) }

func TestPlanIsExactlyWhatWouldRun(t *testing.T) {
	t.Parallel()
	e := execution()
	e.Step = anuencia.Step{}
	var seen agent.Call
	d := runner(hand{before: func(_ context.Context, c agent.Call) (string, error) { seen = c; return `[{"nota":14}]`, nil }})
	got, err := d.Plan(t.Context(), catalogOf(func(s *shelf) { s.tool.Idempotent = true }), e, intent())
	if err != nil {
		t.Fatal(err)
	}
	want := anuencia.Step{
		Number: 1, Agent: "registro", Tool: "nota.actualizar", ToolDigest: "d1", Arguments: `{"nota":15}`, Before: `[{"nota":14}]`,
		Effect: true, Idempotent: true, Risk: anuencia.RiskHigh, Timeout: time.Minute,
	}
	if got != want {
		t.Fatalf("got %+v", got)
	}
	if seen.ExecutionID != e.ID || seen.Step != 1 || seen.Arguments != `{"nota":15}` || seen.Tool.Name != "nota.actualizar" {
		t.Fatalf("the tool was asked %+v", seen)
	}
	e.Step.Number = 3
	if got, err = d.Plan(t.Context(), catalogOf(nil), e, intent()); err != nil || got.Number != 3 {
		t.Fatalf("planned again as step %d, %v", got.Number, err)
	}
}

func TestWhatIsOnNoListIsNotPlanned(t *testing.T) {
	t.Parallel()
	touched := hand{before: func(context.Context, agent.Call) (string, error) { panic("the tool was asked") }}
	for name, change := range map[string]func(*shelf){
		"tool not on the agent's list": func(s *shelf) { s.agent.Tools = []string{"nota.consultar"} },
		"empty list":                   func(s *shelf) { s.agent.Tools = nil },
		"actor without the role":       func(s *shelf) { s.agent.Roles = []string{"finanzas"} },
		"agent that serves nobody":     func(s *shelf) { s.agent.Roles = nil },
		"another agent":                func(s *shelf) { s.agent.Name = "otro" },
		"another runner":               func(s *shelf) { s.agent.Runner = "model" },
		"tool not in the catalog":      func(s *shelf) { s.tool.Name = "otra" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runner(touched).Plan(t.Context(), catalogOf(change), execution(), intent())
			if !errors.Is(err, anuencia.NewFault(anuencia.CodeToolNotAllowed, "")) {
				t.Fatalf("got %v", err)
			}
		})
	}
	if _, err := runner(hand{}).Plan(t.Context(), catalogOf(func(s *shelf) { s.agent.Roles = []string{"*"} }), execution(), intent()); err != nil {
		t.Errorf("for everyone: %v", err)
	}
}

func TestPlanGivesTheToolsAnswer(t *testing.T) {
	t.Parallel()
	none := anuencia.NotFound()
	for name, c := range map[string]struct {
		tool   hand
		change func(*shelf)
		want   *anuencia.Fault
	}{
		"arguments": {hand{}, func(s *shelf) { s.refusal = anuencia.Invalid(anuencia.ReasonSchema) }, anuencia.Invalid(anuencia.ReasonSchema)},
		"missing":   {hand{before: func(context.Context, agent.Call) (string, error) { return "", none }}, nil, none},
		"kind":      {hand{}, func(s *shelf) { s.tool.Kind = "none" }, anuencia.NewFault(anuencia.CodeInternal, "")},
		"panic":     {hand{before: func(context.Context, agent.Call) (string, error) { panic("secret") }}, nil, anuencia.NewFault(anuencia.CodeInternal, "")},
		"time": {
			hand{before: func(ctx context.Context, _ agent.Call) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
			func(s *shelf) { s.tool.Timeout = time.Millisecond }, anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := runner(c.tool).Plan(t.Context(), catalogOf(c.change), execution(), intent())
			if !errors.Is(anuencia.AsFault(err), c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestRunCallsTheToolOnceWithThePlan(t *testing.T) {
	t.Parallel()
	e := execution()
	calls := 0
	d := runner(hand{run: func(_ context.Context, c agent.Call) (harness.StepResult, error) {
		calls++
		if c.ExecutionID != e.ID || c.Step != 1 || c.Arguments != e.Step.Arguments || c.Before != e.Step.Before {
			t.Errorf("called with %+v", c)
		}
		return harness.StepResult{}, errors.New("once is enough")
	}})
	if _, err := d.Run(t.Context(), catalogOf(nil), e); err == nil || calls != 1 {
		t.Fatalf("%d calls, %v", calls, err)
	}
	ok := runner(hand{run: func(context.Context, agent.Call) (harness.StepResult, error) {
		return harness.StepResult{Result: `{}`}, nil
	}})
	if res, err := ok.Run(t.Context(), catalogOf(nil), e); err != nil || res.Result != `{}` {
		t.Fatalf("got %+v, %v", res, err)
	}
}

func TestAChangedDefinitionDoesNotRun(t *testing.T) {
	t.Parallel()
	d := runner(hand{run: func(context.Context, agent.Call) (harness.StepResult, error) { panic("it ran") }})
	_, err := d.Run(t.Context(), catalogOf(func(s *shelf) { s.tool.Digest = "d2" }), execution())
	if !errors.Is(err, harness.ErrSuperseded) {
		t.Fatalf("got %v", err)
	}
	_, err = d.Run(t.Context(), catalogOf(func(s *shelf) { s.tool.Name = "otra" }), execution())
	if !errors.Is(err, anuencia.NewFault(anuencia.CodeToolNotAllowed, "")) {
		t.Fatalf("got %v", err)
	}
}

func TestTheToolsTimeIsNotTheExecutions(t *testing.T) {
	t.Parallel()
	waits := func(ctx context.Context, _ agent.Call) (harness.StepResult, error) {
		<-ctx.Done()
		return harness.StepResult{}, ctx.Err()
	}
	for _, effect := range []bool{true, false} {
		short := catalogOf(func(s *shelf) { s.tool.Timeout, s.tool.Effect = time.Millisecond, effect })
		_, err := runner(hand{run: waits}).Run(t.Context(), short, execution())
		if !errors.Is(err, anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool)) {
			t.Errorf("effect %v: %v", effect, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = runner(hand{run: waits}).Run(ctx, catalogOf(func(s *shelf) { s.tool.Effect = effect }), execution())
		if f := new(anuencia.Fault); !errors.Is(err, context.Canceled) || errors.As(err, &f) {
			t.Errorf("effect %v, cancelled from outside: %v", effect, err)
		}
	}
}

// TestADeafToolIsLeftBehindOnlyWithoutEffect: what an effect did must be known.
func TestADeafToolIsLeftBehindOnlyWithoutEffect(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	deaf := runner(hand{run: func(context.Context, agent.Call) (harness.StepResult, error) {
		<-release
		return harness.StepResult{Result: `{"done":true}`}, nil
	}})
	reads := catalogOf(func(s *shelf) { s.tool.Timeout, s.tool.Effect = time.Millisecond, false })
	if _, err := deaf.Run(t.Context(), reads, execution()); !errors.Is(err, anuencia.NewFault(anuencia.CodeTimeout, anuencia.ReasonTool)) {
		t.Fatalf("got %v", err)
	}
	acts := catalogOf(func(s *shelf) { s.tool.Timeout = time.Millisecond })
	ended := make(chan error, 1)
	go func() {
		res, err := deaf.Run(t.Context(), acts, execution())
		if err == nil && res.Result != `{"done":true}` {
			err = errors.New("another result: " + res.Result)
		}
		ended <- err
	}()
	close(release)
	if err := <-ended; err != nil {
		t.Fatalf("an effect that came late is known: %v", err)
	}
}

func TestAPanicIsAnErrorWithItsStackInside(t *testing.T) {
	t.Parallel()
	d := runner(hand{run: func(context.Context, agent.Call) (harness.StepResult, error) { panic("boom") }})
	_, err := d.Run(t.Context(), catalogOf(nil), execution())
	f := anuencia.AsFault(err)
	if f == nil || f.Code != anuencia.CodeInternal || !strings.Contains(f.Error(), "boom") || !strings.Contains(f.Error(), "direct_test.go") {
		t.Fatalf("got %v", err)
	}
}

func TestASupersededEffectStaysSo(t *testing.T) {
	t.Parallel()
	d := runner(hand{run: func(ctx context.Context, _ agent.Call) (harness.StepResult, error) {
		<-ctx.Done()
		return harness.StepResult{}, errors.Join(harness.ErrSuperseded, ctx.Err())
	}})
	_, err := d.Run(t.Context(), catalogOf(func(s *shelf) { s.tool.Timeout = time.Millisecond }), execution())
	if !errors.Is(err, harness.ErrSuperseded) || errors.Is(err, anuencia.NewFault(anuencia.CodeTimeout, "")) {
		t.Fatalf("got %v", err)
	}
}

func TestLookTellsTheTruth(t *testing.T) {
	t.Parallel()
	keeps := func(happened bool, err error) book {
		return book{look: func(context.Context, agent.Call) (harness.StepResult, bool, error) {
			return harness.StepResult{Result: `{"x":1}`}, happened, err
		}}
	}
	never := hand{run: func(context.Context, agent.Call) (harness.StepResult, error) { panic("started") }}
	away := anuencia.Unavailable("ledger", errors.New("away"))
	for name, c := range map[string]struct {
		tool     agent.Tool
		exec     func(*anuencia.Execution)
		change   func(*shelf)
		happened bool
		err      error
	}{
		"a ledger that has it":     {tool: keeps(true, nil), happened: true},
		"a ledger that has it not": {tool: keeps(false, nil)},
		"a ledger that is away":    {tool: keeps(false, away), err: away},
		"a ledger decides, idempotent or not": {
			tool: keeps(true, nil), exec: func(e *anuencia.Execution) { e.Step.Idempotent = true }, happened: true,
		},
		"no effect":                          {tool: never, exec: func(e *anuencia.Execution) { e.Step.Effect = false }},
		"no effect, no tool":                 {tool: never, exec: func(e *anuencia.Execution) { e.Step.Effect = false }, change: func(s *shelf) { s.tool.Name = "otra" }},
		"idempotent":                         {tool: never, exec: func(e *anuencia.Execution) { e.Step.Idempotent = true }},
		"neither":                            {tool: never, err: harness.ErrUnknownOutcome},
		"a tool that is gone":                {tool: never, change: func(s *shelf) { s.tool.Name = "otra" }, err: harness.ErrUnknownOutcome},
		"changed, and its ledger has it not": {tool: keeps(false, nil), change: func(s *shelf) { s.tool.Digest = "other" }, err: harness.ErrUnknownOutcome},
		"changed, but its ledger has it":     {tool: keeps(true, nil), change: func(s *shelf) { s.tool.Digest = "other" }, happened: true},
		"changed, and keeps no ledger": {
			tool: never, exec: func(e *anuencia.Execution) { e.Step.Idempotent = true }, change: func(s *shelf) { s.tool.Digest = "other" }, err: harness.ErrUnknownOutcome,
		},
		"a kind that is gone": {tool: never, change: func(s *shelf) { s.tool.Kind = "otra" }, err: harness.ErrUnknownOutcome},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := execution()
			if c.exec != nil {
				c.exec(&e)
			}
			res, happened, err := runner(c.tool).Look(t.Context(), catalogOf(c.change), e)
			if happened != c.happened || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("happened %v, %v", happened, err)
			}
			if happened && res.Result != `{"x":1}` {
				t.Fatalf("result %q", res.Result)
			}
		})
	}
}
