package rest

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

type statusBody struct {
	Status string            `json:"status"`
	Parts  map[string]string `json:"parts,omitempty"`
}

// ready is GET /readyz: a status for anybody, the failing parts by name for an
// operator. What a part said is in the log, never here.
func (a *api) ready(ctx context.Context, c *httpkit.Call) error {
	bad := a.o.Service.Ready(ctx)
	if len(bad) == 0 {
		return c.JSON(http.StatusOK, statusBody{Status: "ok"})
	}
	b := statusBody{Status: "unavailable"}
	if a.operator(ctx, c) {
		b.Parts = map[string]string{}
		for part := range bad {
			b.Parts[part] = "failing"
		}
	}
	c.SetHeader("Retry-After", "5")
	return c.JSON(http.StatusServiceUnavailable, b)
}

// operator says whether the request, on a public route, carries an operator's
// credential. Without one there is nobody to look up.
func (a *api) operator(ctx context.Context, c *httpkit.Call) bool {
	if c.Header("Authorization") == "" {
		return false
	}
	p, err := a.o.Service.Authenticate(ctx, c.Credential(), c.Remote)
	return err == nil && p.Has(anuencia.ScopeOperate)
}

// metrics is GET /metrics.
func (a *api) metrics(_ context.Context, c *httpkit.Call) error {
	if !c.Principal.Has(anuencia.ScopeOperate) {
		return anuencia.Denied(anuencia.PolicyScope)
	}
	c.Serve(a.o.Metrics.handler)
	return nil
}

// Metrics counts what the API answers, in a registry of its own. Safe for
// concurrent use.
type Metrics struct {
	Registry   *prometheus.Registry
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	executions *prometheus.CounterVec
	handler    http.Handler
}

// NewMetrics makes the registry.
func NewMetrics() *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anuencia_http_requests_total", Help: "Requests answered, by method, route pattern and HTTP status.",
		}, []string{"method", "route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "anuencia_http_request_duration_seconds", Help: "Time to answer a request, waiting for an execution included.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 25, 60},
		}, []string{"method", "route"}),
		executions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anuencia_executions_total", Help: "Executions handed in, by state and error code when their submission was answered.",
		}, []string{"state", "code"}),
	}
	m.Registry.MustRegister(m.requests, m.duration, m.executions)
	m.handler = promhttp.HandlerFor(m.Registry, promhttp.HandlerOpts{})
	return m
}

// Observe counts an answer; it is for httpkit.Options. A path that nobody serves
// has the route "none" and an unknown method is "other", so that a caller cannot
// make new series.
func (m *Metrics) Observe(method, route string, status int, took time.Duration) {
	if route == "" {
		route = "none"
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = "other"
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.duration.WithLabelValues(method, route).Observe(took.Seconds())
}

func (m *Metrics) execution(e anuencia.Execution) {
	code := ""
	if e.Outcome.Fault != nil {
		code = string(e.Outcome.Fault.Code)
	}
	m.executions.WithLabelValues(string(e.State), code).Inc()
}

