package httpkit

import (
	"net/http"
	"strconv"
	"time"

	"github.com/anuencia-harness/anuencia/internal/contract"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const jsonType = "application/json; charset=utf-8"

// voice is how this caller is spoken to.
func (c *Call) voice(brief bool) contract.Voice {
	return contract.Voice{Messages: c.Words(), Lang: c.Lang(), Brief: brief}
}

// write sends a contract, or a status alone when it has no body.
func (c *Call) write(r contract.Rendering) {
	c.retryAfter(r.RetryAfter)
	if r.Body == nil {
		c.gin.Status(r.Status)
		c.gin.Writer.WriteHeaderNow()
		return
	}
	c.gin.Header("Content-Language", c.Lang())
	c.gin.Data(r.Status, jsonType, r.Body)
}

// retryAfter says when to ask again, in whole seconds, never early.
func (c *Call) retryAfter(d time.Duration) {
	if d > 0 {
		c.gin.Header("Retry-After", strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10))
	}
}

// Answer sends the contract of an execution; an unfinished one answers 202
// without a body. Every 202 says where to ask again.
func (c *Call) Answer(a harness.Answer) error {
	r := contract.FromAnswer(contract.Answer{
		Execution: a.Execution, Ran: a.Ran, Submitted: a.Submitted, Unfinished: a.Unfinished, HideResult: a.HideResult,
	}, c.voice(a.Brief))
	if r.Status == http.StatusAccepted {
		c.gin.Header("Location", "/api/v1/executions/"+a.Execution.ID.String())
	}
	if c.kit.o.Answered != nil {
		c.kit.o.Answered(a.Execution.State, r.Code)
	}
	c.write(r)
	return nil
}

// JSON sends an answer that is no contract.
func (c *Call) JSON(status int, body any) error {
	raw, err := contract.Encode(body)
	if err != nil {
		return err
	}
	c.gin.Data(status, jsonType, raw)
	return nil
}

// Retry is JSON with a Retry-After.
func (c *Call) Retry(status int, after time.Duration, body any) error {
	c.retryAfter(after)
	return c.JSON(status, body)
}

// Bytes sends raw content with headers of its own.
func (c *Call) Bytes(status int, mediaType string, content []byte, headers map[string]string) error {
	for k, v := range headers {
		c.gin.Header(k, v)
	}
	c.gin.Data(status, mediaType, content)
	return nil
}

// Serve lets a plain HTTP handler answer.
func (c *Call) Serve(h http.Handler) error {
	h.ServeHTTP(c.gin.Writer, c.gin.Request)
	return nil
}

// NoContent sends a status without a body.
func (c *Call) NoContent(status int) error {
	c.gin.Status(status)
	c.gin.Writer.WriteHeaderNow()
	return nil
}
