package main

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/anuencia-harness/anuencia/adapters/dirwatch"
	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/adapters/rest"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/catalog"
	"github.com/anuencia-harness/anuencia/internal/contract"
)

// languages puts the institution's language first.
func languages(first string) contract.Languages {
	return contract.NewLanguages(first, catalog.Languages()...)
}

func (a *app) handler() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	seconds := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "anuencia_http_request_duration_seconds", Help: "Time to answer, by route, method and status.",
		Buckets: []float64{.002, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
	}, []string{"route", "method", "status"})
	answered := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "anuencia_executions_answered_total", Help: "Contracts of executions that were sent, by state and error code.",
	}, []string{"state", "code"})
	registry.MustRegister(seconds, answered)
	kit, err := httpkit.New(httpkit.Options{
		UseCases: a.service, Words: func() httpkit.Words { return a.catalogs.Current() }, Languages: languages(a.cfg.Language),
		Now: time.Now, NewID: newID, Log: a.log, Surface: nativeSurface(), CORSOrigins: a.cfg.CORSOrigins, TLS: a.cfg.TLSCert != "",
		Observe: func(route, method string, status int, took time.Duration) {
			if route == "" {
				route = "unknown"
			}
			seconds.WithLabelValues(route, knownMethod(method), strconv.Itoa(status)).Observe(took.Seconds())
		},
		Answered: func(state anuencia.State, code anuencia.Code) {
			answered.WithLabelValues(string(state), string(code)).Inc()
		},
	})
	if err != nil {
		return nil, err
	}
	router := kit.Router()
	err = rest.Mount(router, rest.Options{
		Service: a.service, Kit: kit, Metrics: promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), Words: a.words,
	})
	return router, err
}

// knownMethod keeps what a caller makes up out of the labels.
func knownMethod(m string) string {
	switch m {
	case http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch, http.MethodHead, http.MethodOptions:
		return m
	}
	return "other"
}

// words lists every text of the catalog in a language, by key.
func (a *app) words(lang string) map[string]any {
	c := a.catalogs.Current()
	texts := map[string]string{}
	for _, key := range c.Texts() {
		texts[key] = c.Text(lang, key)
	}
	errs := map[string]string{}
	for _, p := range contract.Pairs() {
		key := string(p.Code)
		if p.Reason != "" {
			key += "." + string(p.Reason)
		}
		errs[key] = c.Message(lang, p.Code, p.Reason)
	}
	return map[string]any{"language": lang, "errors": errs, "texts": texts}
}

// watchFolders reloads when a file of the folders in force changes.
func (a *app) watchFolders(ctx context.Context) {
	for _, dir := range []string{a.cfg.Catalog, a.cfg.Policies} {
		if dir == "" {
			continue
		}
		a.watchFolder(ctx, dir)
	}
}

// quietFor is how long a folder must be at rest before it is read again.
const quietFor = 300 * time.Millisecond

func (a *app) watchFolder(ctx context.Context, dir string) {
	go func() {
		err := dirwatch.Watch(ctx, dir, quietFor, func() { a.reload(ctx) })
		if err != nil && ctx.Err() == nil {
			a.log.WarnContext(ctx, "a folder is not watched; SIGHUP reloads it", slog.String("folder", dir), slog.Any("error", err))
		}
	}()
}

// nativeSurface is whose credentials the native API takes: n8n's too, which polls
// here. A UHP client has a surface of its own.
func nativeSurface() []anuencia.Channel {
	return []anuencia.Channel{anuencia.ChannelAPI, anuencia.ChannelUI, anuencia.ChannelN8N}
}
