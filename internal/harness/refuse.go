package harness

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash/crc32"
	"strings"
	"sync"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// TokenPrefix begins every credential of Anuencia (governance section 7).
const TokenPrefix = "anu_"

const (
	tokenRandom   = 32                // bytes
	tokenHexChars = 2*tokenRandom + 8 // with the CRC-32 of the random part
)

// Authenticate finds the principal of a credential. Missing, unknown, expired
// and revoked credentials are all IDENTITY_NOT_FOUND/credential.
func (s *Service) Authenticate(ctx context.Context, secret string) (anuencia.Principal, error) {
	hash, ok := tokenHash(secret)
	if ok {
		t, found, err := s.o.Store.TokenByHash(ctx, hash)
		if err != nil {
			return anuencia.Principal{}, err
		}
		if found && t.Usable(s.now()) {
			p := t.Principal
			p.TokenID = t.ID
			return p, nil
		}
	}
	return anuencia.Principal{}, anuencia.NewFault(anuencia.CodeIdentityNotFound, anuencia.ReasonCredential)
}

// admitRefusal bounds what strangers can write: above the limits a refusal is
// counted and not recorded, and the answer is RATE_LIMIT_EXCEEDED (contracts
// section 6).
func (s *Service) admitRefusal(ctx context.Context, remote string) error {
	res, err := s.o.Limiter.Allow(ctx,
		RateKey{Kind: "address", Value: remote, Limit: s.o.Limits.Address},
		RateKey{Kind: "unknown", Value: "all", Limit: s.o.Limits.Unknown})
	if err != nil {
		return anuencia.Unavailable("limit refusals", err)
	}
	if res.Allowed {
		return nil
	}
	s.suppressed.add(remote)
	return rateFault(res)
}

func rateFault(res RateResult) *anuencia.Fault {
	return anuencia.NewFault(anuencia.CodeRateLimited, "").WithDetails(anuencia.Details{
		RetryAfterMS: max(1, res.RetryAfter.Milliseconds()), Limit: int64(res.Hit.Limit.Count),
		Window: windowName(res.Hit.Limit.Window),
	})
}

func windowName(d time.Duration) string {
	name := d.String() // "1m0s", "1h0m0s"
	name = strings.TrimSuffix(name, "0s")
	if trimmed, ok := strings.CutSuffix(name, "h0m"); ok {
		return trimmed + "h"
	}
	return name
}

// tokenHash gives the SHA-256 by which a well-formed credential is looked up.
// The checksum turns away typing errors without asking the store; it is no
// secret.
func tokenHash(secret string) ([32]byte, bool) {
	body, ok := strings.CutPrefix(secret, TokenPrefix)
	if !ok || len(body) != tokenHexChars {
		return [32]byte{}, false
	}
	b, err := hex.DecodeString(body)
	if err != nil || crc32.ChecksumIEEE(b[:tokenRandom]) != bigEndian(b[tokenRandom:]) {
		return [32]byte{}, false
	}
	return sha256.Sum256([]byte(secret)), true
}

func bigEndian(b []byte) uint32 {
	return uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
}

// Refuse records a request that never became an execution in a chain of its
// own, under the request's own id (contracts section 1). about tells what was
// asked, for the auditor; it must hold no secret. An error stands for what the
// caller hears instead: RATE_LIMIT_EXCEEDED in a flood before a credential is
// known, INTERNAL_ERROR/unavailable when the audit cannot be written.
func (s *Service) Refuse(ctx context.Context, r Request, f *anuencia.Fault, about map[string]any) error {
	if r.Principal.ID.IsZero() && f.Code != anuencia.CodeInternal {
		if err := s.admitRefusal(ctx, r.Remote); err != nil {
			return err
		}
	}
	if f.Code == anuencia.CodeInternal {
		s.log(ctx, "request failed", f, slogExecution(r.ID))
	}
	e := anuencia.Execution{ID: r.ID, PrincipalID: r.Principal.ID, Channel: s.channelOf(r), TraceID: r.TraceID, PolicyRevision: s.o.Policy.Revision()}
	if !r.Principal.Person.IsZero() {
		if a, err := s.o.Directory.Resolve(ctx, r.Principal.Person); err == nil {
			e.Actor.ID = a.ID // who tried; a directory that is away does not hinder the record
		}
	}
	received := map[string]any{"principal": r.Principal.Name, "remote": r.Remote}
	for k, v := range about {
		received[k] = v
	}
	events := []anuencia.AuditEvent{s.event(e, anuencia.EventReceived, received)}
	if about["operation"] == OperationDecide {
		refused := s.event(e, anuencia.EventApprovalRefused, faultPayload(f))
		refused.ErrorCode = f.Code
		events = append(events, refused)
	}
	events = append(events, s.failed(e, f))
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error {
		return tx.Record(ctx, events[0], events[1:]...)
	})
	if err != nil {
		return anuencia.Unavailable("record a refusal", err)
	}
	return nil
}

// OperationDecide in about["operation"] tells Refuse that the request was an
// attempt to decide.
const OperationDecide = "decide"

// suppressed counts refusals that were not recorded one by one.
type suppressed struct {
	mu     sync.Mutex
	counts map[string]int
	total  int
}

// maxAddresses bounds the memory that a flood from many addresses takes.
const maxAddresses = 1000

func (c *suppressed) add(remote string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.total++
	if _, known := c.counts[remote]; known || len(c.counts) < maxAddresses {
		c.counts[remote]++
	}
}

func (c *suppressed) take() (map[string]int, int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts, total := c.counts, c.total
	c.counts, c.total = nil, 0
	return counts, total
}

func (c *suppressed) giveBack(counts map[string]int, total int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = map[string]int{}
	}
	c.total += total
	for k, n := range counts {
		c.counts[k] += n
	}
}

// FlushSuppressed records the counts since the last time, if there are any.
// Called once a minute (contracts section 6).
func (s *Service) FlushSuppressed(ctx context.Context) error {
	counts, total := s.suppressed.take()
	if total == 0 {
		return nil
	}
	ev := s.systemEvent(anuencia.EventIntakeSuppressed, map[string]any{"total": total, "by_address": counts})
	err := s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.RecordSystem(ctx, ev) })
	if err != nil {
		s.suppressed.giveBack(counts, total)
	}
	return err
}

// systemEvent is an event of no execution; the store sets its stream.
func (s *Service) systemEvent(t anuencia.EventType, payload map[string]any) anuencia.AuditEvent {
	ev := s.event(anuencia.Execution{}, t, payload)
	ev.StreamID = anuencia.StreamID{}
	ev.PolicyRevision = s.o.Policy.Revision()
	return ev
}

// RecordActivation records that a revision of a part (catalog, directory,
// policies) came into force.
func (s *Service) RecordActivation(ctx context.Context, t anuencia.EventType, part, revision string) error {
	ev := s.systemEvent(t, map[string]any{"part": part, "revision": revision})
	return s.o.Store.Atomically(ctx, func(ctx context.Context, tx Tx) error { return tx.RecordSystem(ctx, ev) })
}
