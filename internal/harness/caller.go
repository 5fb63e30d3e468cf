package harness

import (
	"context"
	"log/slog"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

func slogExecution(id anuencia.ExecutionID) slog.Attr {
	return slog.String("execution_id", id.String())
}

func (s *Service) channelOf(r Request) anuencia.Channel {
	if r.Channel != "" {
		return r.Channel
	}
	return r.Principal.DefaultChannel()
}

// need refuses a credential without the scope, or on a channel it does not
// have.
func (s *Service) need(r Request, scopes ...anuencia.Scope) error {
	if !r.Principal.MayUse(s.channelOf(r)) {
		return anuencia.Denied(anuencia.PolicyScope)
	}
	for _, sc := range scopes {
		if r.Principal.Has(sc) {
			return nil
		}
	}
	return anuencia.Denied(anuencia.PolicyScope)
}

// caller is whose objects a request sees: the actor, and the person bound to
// the credential when that is somebody else.
type caller struct {
	actor  anuencia.Actor
	behalf anuencia.PersonID // who acts for the actor, zero when nobody or a machine
	// behalfHandle is how that person is resolved again.
	behalfHandle anuencia.Handle
}

// who resolves the actor of a request: the person named under act_for, else the
// person the credential is bound to. IDENTITY_NOT_FOUND/actor; POLICY_DENIED by
// act_for; INTERNAL_ERROR/unavailable.
func (s *Service) who(ctx context.Context, r Request) (caller, error) {
	own := r.Principal.Person
	if r.ActFor == "" {
		if own.IsZero() {
			return caller{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor)
		}
		a, err := s.o.Directory.Resolve(ctx, own)
		return caller{actor: a}, err
	}
	if len(r.Principal.ActFor) == 0 {
		return caller{}, anuencia.Denied(anuencia.PolicyActFor)
	}
	a, err := s.o.Directory.Resolve(ctx, anuencia.Handle{Channel: s.channelOf(r), ExternalID: r.ActFor})
	if err != nil {
		return caller{}, err
	}
	if !r.Principal.MayActFor(a.Person) {
		// As for nobody: whom the directory knows is not for everyone to learn.
		return caller{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonActor)
	}
	c := caller{actor: a}
	if !own.IsZero() {
		p, err := s.o.Directory.Resolve(ctx, own)
		if err != nil {
			return caller{}, err
		}
		if p.ID != a.ID {
			c.behalf, c.behalfHandle = p.ID, own
		}
	}
	return c, nil
}

// brief says whether details are withheld from this caller (contracts section
// 1): external channels and people who are not institutional.
func brief(ch anuencia.Channel, a anuencia.Actor) bool { return ch.External() || !a.Institutional }

// Brief says whether details are withheld from who sent r; a caller that does
// not resolve is treated as a stranger, a machine principal as institutional.
func (s *Service) Brief(ctx context.Context, r Request) bool {
	if s.channelOf(r).External() {
		return true
	}
	if r.Principal.Person.IsZero() && r.ActFor == "" {
		return false
	}
	c, err := s.who(ctx, r)
	return err != nil || !c.actor.Institutional
}

// allowRead counts a read or a decision against its principal.
func (s *Service) allowRead(ctx context.Context, r Request) error {
	return s.allow(ctx, RateKey{Kind: "read", Value: r.Principal.ID.String(), Limit: s.o.Limits.Read})
}

func (s *Service) allow(ctx context.Context, keys ...RateKey) error {
	res, err := s.o.Limiter.Allow(ctx, keys...)
	if err != nil {
		return anuencia.Unavailable("rate limit", err)
	}
	if !res.Allowed {
		return rateFault(res)
	}
	return nil
}
