package anuenciatest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

// ErrLost is a run that gave no answer.
var ErrLost = errors.New("connection lost")

// LedgerRunner is a harness.Runner whose one tool has an effect and keeps a
// ledger, as sql_action does. The value that it changes is State.
type LedgerRunner struct {
	mu       sync.Mutex
	state    int
	effects  map[anuencia.ExecutionID]int
	lose     string // "before" or "after": the next run is lost then
	lookDown bool
	Effect   bool
	Digest   string
	OnPlan   func() // called at each Plan
	OnRun    func() // called when a run has done its work
	Err      error  // what every Run gives, without doing anything
}

// NewLedgerRunner makes one whose tool has an effect.
func NewLedgerRunner() *LedgerRunner {
	return &LedgerRunner{effects: map[anuencia.ExecutionID]int{}, Effect: true, Digest: "d1"}
}

// Lose makes the next run get lost "before" or "after" its effect.
func (l *LedgerRunner) Lose(when string) { l.mu.Lock(); l.lose = when; l.mu.Unlock() }

// SetLookDown makes the ledger unreadable.
func (l *LedgerRunner) SetLookDown(down bool) { l.mu.Lock(); l.lookDown = down; l.mu.Unlock() }

// Touch changes the state behind everybody's back.
func (l *LedgerRunner) Touch() { l.mu.Lock(); l.state++; l.mu.Unlock() }

// Effects says how often the effect of an execution happened.
func (l *LedgerRunner) Effects(id anuencia.ExecutionID) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.effects[id]
}

func (l *LedgerRunner) before() string { return fmt.Sprintf(`{"state":%d}`, l.state) }

// Plan implements harness.Runner.
func (l *LedgerRunner) Plan(_ context.Context, _ harness.Catalog, e anuencia.Execution, in anuencia.Intent) (anuencia.Step, error) {
	if l.OnPlan != nil {
		l.OnPlan()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return anuencia.Step{
		Number: 1, Agent: in.Agent, Tool: in.Tool, ToolDigest: l.Digest, Arguments: e.Input, Before: l.before(),
		Effect: l.Effect, Risk: in.Risk, Timeout: time.Second,
	}, nil
}

// Run implements harness.Runner.
func (l *LedgerRunner) Run(_ context.Context, _ harness.Catalog, e anuencia.Execution) (harness.StepResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Err != nil {
		return harness.StepResult{}, l.Err
	}
	if l.OnRun != nil {
		defer l.OnRun()
	}
	lose := l.lose
	l.lose = ""
	if lose == "before" {
		return harness.StepResult{}, ErrLost
	}
	if l.effects[e.ID] == 0 && e.Step.Before != l.before() {
		return harness.StepResult{}, harness.ErrSuperseded
	}
	l.state++
	l.effects[e.ID]++
	if lose == "after" {
		return harness.StepResult{}, ErrLost
	}
	return harness.StepResult{Result: `{"done":true}`}, nil
}

// Look implements harness.Runner.
func (l *LedgerRunner) Look(_ context.Context, _ harness.Catalog, e anuencia.Execution) (harness.StepResult, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lookDown {
		return harness.StepResult{}, false, ErrLost
	}
	return harness.StepResult{Result: `{"done":true}`}, l.effects[e.ID] > 0, nil
}
