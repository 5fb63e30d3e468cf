package audit

import (
	"fmt"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Defect names the first row of a chain that does not verify, and why.
type Defect struct { //nolint:errname // what a verification finds; it is reported, not only returned
	Stream anuencia.StreamID
	Event  anuencia.EventID // zero when a row is missing
	Seq    int64
	Rule   string // "seq", "prev_hash", "payload", "hash", "stream", "head", "empty"
}

// Error says where and what.
func (d *Defect) Error() string {
	return fmt.Sprintf("stream %s, seq %d, event %s: %s does not verify", d.Stream, d.Seq, d.Event, d.Rule)
}

// VerifyStream walks one chain from its first row to its last. head is the end
// that the chain's owner (the row of the execution) remembers, nil for a chain
// that has none. erased says of which rows the payload was erased on record; nil
// means of none: a payload that is gone without a word is a defect. It gives a
// *Defect for the first row that is bad, nil when all is well.
func VerifyStream(id anuencia.StreamID, events []anuencia.SealedEvent, head *anuencia.Head, erased func(anuencia.EventID) bool) error {
	var last anuencia.Head
	for i, e := range events {
		bad := func(rule string) error {
			return &Defect{Stream: id, Event: e.ID, Seq: int64(i) + 1, Rule: rule}
		}
		gone := e.PayloadText == "" && len(e.Salt) == 0 && erased != nil && erased(e.ID)
		switch {
		case e.StreamID != id:
			return bad("stream")
		case e.Seq != last.Seq+1:
			return bad("seq")
		case e.PrevHash != last.Hash:
			return bad("prev_hash")
		case !gone && PayloadDigest(e.Salt, e.PayloadText) != e.PayloadDigest:
			return bad("payload")
		case HashOf(e) != e.Hash:
			return bad("hash")
		}
		last = anuencia.Head{Seq: e.Seq, Hash: e.Hash}
	}
	switch {
	case len(events) == 0:
		return &Defect{Stream: id, Rule: "empty"}
	case head != nil && *head != last:
		return &Defect{Stream: id, Seq: last.Seq + 1, Rule: "head"}
	}
	return nil
}
