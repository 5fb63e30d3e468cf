package anuencia

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/google/uuid"
)

// ID is a UUID whose kind is part of its type, so that an approval's id cannot
// be passed where an execution's is meant. The zero value means "none".
type ID[K any] uuid.UUID

type (
	executionKind struct{}
	approvalKind  struct{}
	eventKind     struct{}
	personKind    struct{}
	principalKind struct{}
	tokenKind     struct{}
	streamKind    struct{}
	artifactKind  struct{}
)

// The typed ids of the domain.
type (
	// ExecutionID is a UUIDv7 (contracts section 1).
	ExecutionID = ID[executionKind]
	// ApprovalID is a UUIDv7.
	ApprovalID = ID[approvalKind]
	// EventID is a UUIDv7 (governance section 3).
	EventID = ID[eventKind]
	// PersonID is random (contracts section 9).
	PersonID = ID[personKind]
	// PrincipalID is who holds credentials.
	PrincipalID = ID[principalKind]
	// TokenID is a credential.
	TokenID = ID[tokenKind]
	// StreamID is a hash chain.
	StreamID = ID[streamKind]
	// ArtifactID is a file.
	ArtifactID = ID[artifactKind]
)

// String gives the canonical lower-case form with hyphens.
func (i ID[K]) String() string { return uuid.UUID(i).String() }

// UUID gives the untyped value.
func (i ID[K]) UUID() uuid.UUID { return uuid.UUID(i) }

// IsZero says whether there is no id.
func (i ID[K]) IsZero() bool { return i == ID[K]{} }

// FromUUID types an untyped id.
func FromUUID[I ~[16]byte](u uuid.UUID) I { return I(u) }

var canonicalUUID = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)

// ParseID reads the canonical form only: URN, braces, upper case and missing
// hyphens are refused, so that one object has one name.
func ParseID[I ~[16]byte](s string) (I, error) {
	var zero I
	if !canonicalUUID.MatchString(s) {
		return zero, errors.New("not a canonical uuid")
	}
	u, err := uuid.Parse(s)
	if err != nil {
		return zero, fmt.Errorf("parse uuid: %w", err)
	}
	return I(u), nil
}

// StreamOf is the hash chain of an execution: the stream is the execution
// (governance section 3).
func StreamOf(id ExecutionID) StreamID { return StreamID(id) }

const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

// ShortCode turns 5 random bytes into 8 characters of Crockford base32
// (contracts section 4).
func ShortCode(random [5]byte) string {
	var v uint64
	for _, b := range random {
		v = v<<8 | uint64(b)
	}
	var out [8]byte
	for i := 7; i >= 0; i-- {
		out[i] = crockford[v&31]
		v >>= 5
	}
	return string(out[:])
}

// NormalizeShortCode reads a code as a person types it: lower case, and O, I
// and L for the digits they look like. It reports false when s is no code.
func NormalizeShortCode(s string) (string, bool) {
	if len(s) != 8 {
		return "", false
	}
	out := []byte(s)
	for i, c := range out {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		switch c {
		case 'O':
			c = '0'
		case 'I', 'L':
			c = '1'
		}
		if !isCrockford(c) {
			return "", false
		}
		out[i] = c
	}
	return string(out), true
}

func isCrockford(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U'
}
