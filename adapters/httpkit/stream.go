package httpkit

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/contract"
)

// writeWithin bounds one write of a stream: a reader that does not read is let go.
const writeWithin = 20 * time.Second

// Stream sends server-sent events. The headers leave with the first event or
// comment, so that a refusal before it is still the standard error.
type Stream struct {
	c       *Call
	started bool
}

// WantsStream says whether the caller asks for server-sent events.
func (c *Call) WantsStream() bool {
	for part := range strings.SplitSeq(c.gin.GetHeader("Accept"), ",") {
		media, _, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(media), "text/event-stream") {
			return true
		}
	}
	return false
}

// LastEventID reads Last-Event-ID: 0 when it is absent, VALIDATION_FAILED/schema
// when it is no number of ours.
func (c *Call) LastEventID() (int64, error) {
	const most = 20
	v, err := c.Header("Last-Event-ID", most)
	if err != nil || v == "" {
		return 0, err
	}
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 0 {
		return 0, anuencia.Invalid(anuencia.ReasonSchema, anuencia.FieldError{Path: "Last-Event-ID", Rule: "number"})
	}
	return n, nil
}

// Stream starts a stream; nothing is sent yet.
func (c *Call) Stream() *Stream { return &Stream{c: c} }

// Event sends one event; its data is one line of JSON.
func (s *Stream) Event(id int64, name string, data any) error {
	raw, err := contract.Encode(data)
	if err != nil {
		return err
	}
	return s.send(fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", id, name, raw))
}

// Started says whether anything was sent: from then on there is no other answer.
func (s *Stream) Started() bool { return s.started }

// Comment keeps the connection alive.
func (s *Stream) Comment() error { return s.send(": .\n\n") }

func (s *Stream) send(text string) error {
	w := s.c.gin.Writer
	if !s.started {
		s.started = true
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.Header().Set("X-Accel-Buffering", "no")
		w.WriteHeader(http.StatusOK)
	}
	control := http.NewResponseController(w)
	if err := control.SetWriteDeadline(s.c.kit.o.Now().Add(writeWithin)); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if _, err := w.WriteString(text); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	if err := control.Flush(); err != nil {
		return fmt.Errorf("stream: %w", err)
	}
	return nil
}
