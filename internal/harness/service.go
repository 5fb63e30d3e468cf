// Package harness holds the use cases of Anuencia: submit, decide, run, cancel,
// expire, read and the administration of credentials. It names no vendor: what
// it needs of the world stands in ports.go, and every channel calls the same
// functions.
package harness

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Limits are the rates of one installation (contracts section 6).
type Limits struct {
	Principal anuencia.Limit // submissions of one credential's principal
	Actor     anuencia.Limit // submissions for one actor
	Intent    anuencia.Limit // submissions of one intent by one actor, unless the intent has its own
	Read      anuencia.Limit // reads and decisions of one principal
	Address   anuencia.Limit // refused credentials recorded for one address
	Unknown   anuencia.Limit // refused credentials recorded in all
}

// DefaultLimits are those of contracts section 6.
func DefaultLimits() Limits {
	submit := anuencia.Limit{Count: 600, Window: time.Minute, Burst: 200}
	return Limits{
		Principal: submit, Actor: submit, Intent: submit,
		Read:    anuencia.Limit{Count: 6000, Window: time.Minute, Burst: 2000},
		Address: anuencia.Limit{Count: 10, Window: time.Minute, Burst: 10},
		Unknown: anuencia.Limit{Count: 100, Window: time.Minute, Burst: 100},
	}
}

// Options are the parts of a Service. All are required but Limits, Grace and
// MaxAttempts.
type Options struct {
	Store     Store
	Directory Directory
	Policy    Policy
	Limiter   Limiter
	Catalog   func() Catalog // the current revision
	Runner    Runner
	Guard     Guard
	Watcher   Watcher
	Log       *slog.Logger
	Now       func() time.Time
	NewID     func() uuid.UUID     // UUIDv7
	Random    func(p []byte) error // cryptographic
	Limits    Limits
	// Grace is added to an execution's timeout to make its lease: after it, a
	// run without an outcome is taken for dead. 15 s when zero.
	Grace time.Duration
	// MaxAttempts bounds how often a run that dies is started again. 5 when zero.
	MaxAttempts int
}

// Service is the use cases over their ports. Safe for concurrent use.
type Service struct {
	o          Options
	mu         sync.Mutex
	cancels    map[anuencia.ExecutionID]context.CancelCauseFunc // runs of this process
	running    sync.WaitGroup
	stopping   bool
	suppressed suppressed
}

// New checks that no part is missing.
func New(o Options) (*Service, error) {
	missing := o.Store == nil || o.Directory == nil || o.Policy == nil || o.Limiter == nil || o.Catalog == nil ||
		o.Runner == nil || o.Guard == nil || o.Watcher == nil || o.Log == nil || o.Now == nil || o.NewID == nil || o.Random == nil
	if missing {
		return nil, errors.New("harness: a required part is missing")
	}
	if o.Limits == (Limits{}) {
		o.Limits = DefaultLimits()
	}
	if o.Grace == 0 {
		o.Grace = 15 * time.Second
	}
	if o.MaxAttempts == 0 {
		o.MaxAttempts = 5
	}
	return &Service{o: o, cancels: map[anuencia.ExecutionID]context.CancelCauseFunc{}}, nil
}

// Close stops taking new runs, waits for those of this process until ctx ends
// and records the last counts of suppressed refusals. Runs that do not end in
// time are found by the next sweep, as after a crash.
func (s *Service) Close(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.FlushSuppressed(ctx)
}

// Ready asks each part that the service cannot do without; the map has the
// failing ones only.
func (s *Service) Ready(ctx context.Context) map[string]error {
	bad := map[string]error{}
	if err := s.o.Store.Ping(ctx); err != nil {
		bad["database"] = err
	}
	if s.isStopping() {
		bad["server"] = errStopping
	}
	return bad
}

func (s *Service) isStopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopping
}

// begin counts a run in, unless the service is stopping.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return false
	}
	s.running.Add(1)
	return true
}

var errStopping = errors.New("the server is stopping")

func (s *Service) now() time.Time { return anuencia.Instant(s.o.Now()) }

func (s *Service) shortCode() (string, error) {
	var b [5]byte
	if err := s.o.Random(b[:]); err != nil {
		return "", anuencia.Internal("short code", err)
	}
	return anuencia.ShortCode(b), nil
}

// log tells operators of a failure that a caller sees only as a code.
func (s *Service) log(ctx context.Context, msg string, err error, attrs ...slog.Attr) {
	s.o.Log.LogAttrs(ctx, slog.LevelError, msg, append(attrs, slog.Any("error", err))...) //nolint:sloglint // msg is a constant at each call
}
