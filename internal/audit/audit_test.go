package audit_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ in, want string }{
		"order and space":  {` { "b" : 1.0 , "a" : [ true , null ] } `, `{"a":[true,null],"b":1}`},
		"numbers":          {`[1e2,0.10,-0,1E-7,9007199254740991]`, `[100,0.1,0,1e-7,9007199254740991]`},
		"escapes":          {`"\u00e9\/\u000a"`, `"é/\n"`},
		"utf16 key order":  {"{\"\\ud83d\\ude00\":1,\"\uffff\":2}", "{\"😀\":1,\"\uffff\":2}"},
		"arabic and emoji": {`{"x":"مرحبا 🎓"}`, `{"x":"مرحبا 🎓"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := audit.Canonical([]byte(c.in))
			if err != nil || got != c.want {
				t.Fatalf("got %q, %v", got, err)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 5000) + strings.Repeat("]", 5000)
	wide := "{" + strings.TrimSuffix(strings.Repeat(`"k":{},`, 1), ",") + "}"
	var many strings.Builder
	many.WriteString("[")
	for i := range audit.MaxKeys + 1 {
		if i > 0 {
			many.WriteString(",")
		}
		many.WriteString(`{"k":1}`)
	}
	many.WriteString("]")
	if _, err := audit.Canonical([]byte(wide)); err != nil {
		t.Fatalf("one key: %v", err)
	}
	for name, c := range map[string]struct {
		in     string
		reason anuencia.Reason
	}{
		"empty":          {"", anuencia.ReasonMalformed},
		"half":           {`{"a":`, anuencia.ReasonMalformed},
		"two values":     {`{} {}`, anuencia.ReasonMalformed},
		"duplicate keys": {`{"a":1,"a":2}`, anuencia.ReasonMalformed},
		"bad utf-8":      {"\"\xff\"", anuencia.ReasonMalformed},
		"lone surrogate": {`"\ud800"`, anuencia.ReasonMalformed},
		"too deep":       {deep, anuencia.ReasonMalformed},
		"too many keys":  {many.String(), anuencia.ReasonMalformed},
		"2^53":           {`{"n":9007199254740993}`, anuencia.ReasonSchema},
		"overflow":       {`[1e400]`, anuencia.ReasonSchema},
		"nul":            {`{"a":"x\u0000y"}`, anuencia.ReasonSchema},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := audit.Canonical([]byte(c.in))
			if f := anuencia.AsFault(err); f == nil || f.Code != anuencia.CodeValidation || f.Reason != c.reason {
				t.Fatalf("got %v", err)
			}
		})
	}
}

// TestOwnValuesMayBeLarge: the limits are for what callers send. An event around
// the largest input, and a table of many rows, still have a canonical form.
func TestOwnValuesMayBeLarge(t *testing.T) {
	t.Parallel()
	input := map[string]any{}
	for i := range audit.MaxKeys {
		input[strconv.Itoa(i)] = i
	}
	text, err := audit.CanonicalOf(input)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Canonical([]byte(text)); err != nil {
		t.Fatalf("exactly the limit: %v", err)
	}
	events := []anuencia.AuditEvent{{Payload: map[string]any{"input": json.RawMessage(text), "metadata": input}}}
	if _, _, err := audit.Seal(anuencia.Head{}, events); err != nil {
		t.Fatalf("an event around it: %v", err)
	}
	if _, err := audit.CanonicalOf(map[string]any{"n": json.RawMessage("9007199254740993")}); err == nil {
		t.Fatal("a number without an exact form was accepted")
	}
}

func FuzzCanonical(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5e3,"x"],"b":null}`))
	f.Add([]byte(`9007199254740993`))
	f.Fuzz(func(t *testing.T, in []byte) {
		once, err := audit.Canonical(in)
		if err != nil {
			if anuencia.AsFault(err).Code != anuencia.CodeValidation {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		twice, err := audit.Canonical([]byte(once))
		if err != nil || twice != once {
			t.Fatalf("not a fixed point: %q, %q, %v", once, twice, err)
		}
	})
}

func chain(t *rapid.T, stream anuencia.StreamID) ([]anuencia.SealedEvent, anuencia.Head) {
	n := rapid.IntRange(1, 12).Draw(t, "n")
	events := make([]anuencia.AuditEvent, n)
	for i := range events {
		events[i] = anuencia.AuditEvent{
			ID: anuencia.EventID(uuid.New()), StreamID: stream, ExecutionID: anuencia.ExecutionID(stream),
			Type: rapid.SampledFrom(anuencia.EventTypes()).Draw(t, "type"), OccurredAt: time.UnixMicro(int64(i)).UTC(),
			Payload: map[string]any{"text": rapid.String().Filter(func(s string) bool { return !strings.ContainsRune(s, 0) }).Draw(t, "text")},
		}
	}
	sealed, head, err := audit.Seal(anuencia.Head{}, events)
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	return sealed, head
}

// TestEveryChangeIsFound alters one thing of one row, or drops, doubles, swaps
// or cuts rows, and expects the first bad row to be named.
func TestEveryChangeIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		stream := anuencia.StreamID(uuid.New())
		rows, head := chain(rt, stream)
		if err := audit.VerifyStream(stream, rows, &head, nil); err != nil {
			rt.Fatalf("sound chain: %v", err)
		}
		i := rapid.IntRange(0, len(rows)-1).Draw(rt, "row")
		bad, seq := tamper(rt, rows, i)
		d := new(audit.Defect)
		if err := audit.VerifyStream(stream, bad, &head, nil); !errors.As(err, &d) || d.Seq != seq {
			rt.Fatalf("row %d: got %v, want seq %d", i, err, seq)
		}
	})
}

func tamper(t *rapid.T, rows []anuencia.SealedEvent, i int) ([]anuencia.SealedEvent, int64) {
	out := append([]anuencia.SealedEvent{}, rows...)
	e := &out[i]
	seq := int64(i + 1)
	switch rapid.IntRange(0, 12).Draw(t, "how") {
	case 0:
		e.PayloadText += " "
	case 1:
		e.Salt = append([]byte{1}, e.Salt...)
	case 2:
		e.Type = "made.up"
	case 3:
		e.OccurredAt = e.OccurredAt.Add(time.Microsecond)
	case 4:
		e.ActorID[0] ^= 1
	case 5:
		e.ErrorCode = "X"
	case 6:
		e.PolicyRevision += "a"
	case 7:
		e.Hash[31] ^= 1
	case 8:
		e.StreamID[3] ^= 1
	case 9:
		e.Channel, e.SubjectRef = "a", "b"
	case 10:
		e.ID[2] ^= 1
	case 11:
		out = append(out[:i:i], rows[i+1:]...) // a row is gone
		if len(out) == 0 {
			seq = 0
		}
	case 12:
		out = append(out[:i+1:i+1], rows[i:]...) // a row twice
		seq++
	}
	return out, seq
}

func TestAnErasedPayloadStillVerifies(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		stream := anuencia.StreamID(uuid.New())
		rows, head := chain(rt, stream)
		rows[0].PayloadText, rows[0].Salt = "", nil
		onRecord := func(id anuencia.EventID) bool { return id == rows[0].ID }
		if err := audit.VerifyStream(stream, rows, &head, onRecord); err != nil {
			rt.Fatalf("erased on record: %v", err)
		}
		if err := audit.VerifyStream(stream, rows, &head, nil); err == nil {
			rt.Fatalf("a payload that is gone without a word verifies")
		}
	})
}

// TestFieldsDoNotRunIntoEachOther: moving a byte from one field to its
// neighbour changes the hash.
func TestFieldsDoNotRunIntoEachOther(t *testing.T) {
	t.Parallel()
	a := anuencia.SealedEvent{AuditEvent: anuencia.AuditEvent{PolicyRevision: "ab", TraceID: "c"}}
	b := anuencia.SealedEvent{AuditEvent: anuencia.AuditEvent{PolicyRevision: "a", TraceID: "bc"}}
	if audit.HashOf(a) == audit.HashOf(b) {
		t.Fatal("two rows share an encoding")
	}
}
