package audit

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// saltBytes is the length of a payload's salt (governance section 4 asks for
// at least 16).
const saltBytes = 16

// hashDomain separates this use of SHA-256, and version 1 of the encoding,
// from every other.
const hashDomain = "anuencia.audit.v1"

// Seal appends events to a chain that ends at head: canonical payload, salt,
// payload digest, sequence number and hash. It gives the sealed rows and the
// chain's new head. Safe for concurrent use. The error is that of a payload
// with no canonical form, or of the system's random source.
func Seal(head anuencia.Head, events []anuencia.AuditEvent) ([]anuencia.SealedEvent, anuencia.Head, error) {
	sealed := make([]anuencia.SealedEvent, 0, len(events))
	for _, e := range events {
		s := anuencia.SealedEvent{AuditEvent: e, Seq: head.Seq + 1, PrevHash: head.Hash, Salt: make([]byte, saltBytes)}
		if _, err := rand.Read(s.Salt); err != nil {
			return nil, head, fmt.Errorf("salt of %s: %w", e.Type, err)
		}
		payload := e.Payload
		if payload == nil {
			payload = map[string]any{}
		}
		text, err := CanonicalOf(payload)
		if err != nil {
			return nil, head, fmt.Errorf("payload of %s: %w", e.Type, err)
		}
		s.PayloadText = text
		s.PayloadDigest = PayloadDigest(s.Salt, text)
		s.Hash = HashOf(s)
		head = anuencia.Head{Seq: s.Seq, Hash: s.Hash}
		sealed = append(sealed, s)
	}
	return sealed, head, nil
}

// PayloadDigest is SHA-256(salt || stored payload bytes), governance section 4.
func PayloadDigest(salt []byte, payload string) [32]byte {
	h := sha256.New()
	h.Write(salt)
	h.Write([]byte(payload))
	return [32]byte(h.Sum(nil))
}

// HashOf computes the hash of a row from its fixed fields, its payload digest
// and the hash before it: each field is preceded by its length in 8 bytes, big
// endian, so that no two rows share an encoding. The payload itself is not an
// input, so that an erased row still verifies.
func HashOf(e anuencia.SealedEvent) [32]byte {
	h := sha256.New()
	field(h, []byte(hashDomain))
	id, stream, execution := e.ID, e.StreamID, e.ExecutionID
	actor, principal := e.ActorID, e.PrincipalID
	field(h, id[:])
	field(h, stream[:])
	field(h, execution[:])
	field(h, binary.BigEndian.AppendUint64(nil, uint64(e.Seq))) //nolint:gosec // seq is 1..n
	field(h, []byte(e.Type))
	field(h, binary.BigEndian.AppendUint64(nil, uint64(e.OccurredAt.UnixMicro())))
	field(h, actor[:])
	field(h, principal[:])
	for _, s := range []string{string(e.Channel), e.SubjectRef, string(e.ErrorCode), e.PolicyRevision, e.TraceID} {
		field(h, []byte(s))
	}
	field(h, e.PayloadDigest[:])
	field(h, e.PrevHash[:])
	return [32]byte(h.Sum(nil))
}

func field(h hash.Hash, b []byte) {
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(len(b)))
	h.Write(n[:])
	h.Write(b)
}
