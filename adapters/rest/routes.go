package rest

import (
	"net/http"

	"github.com/anuencia-harness/anuencia/adapters/httpkit"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const base = "/api/v1"

type endpoint struct {
	method, path string
	route        httpkit.Route
	handler      httpkit.Handler
}

// endpoints is the whole API on one screen.
func (a *api) endpoints() []endpoint {
	// Credentials of these channels are at home here. n8n polls by this API.
	home := []anuencia.Channel{anuencia.ChannelAPI, anuencia.ChannelUI, anuencia.ChannelN8N}
	open := httpkit.Route{Public: true}
	as := func(operation string) httpkit.Route { return httpkit.Route{Channels: home, Operation: operation} }
	file := httpkit.Route{Channels: home, Operation: "read", Escaped: true}
	decide := as(harness.OperationDecide)
	get, post := http.MethodGet, http.MethodPost

	return []endpoint{
		{post, base + "/executions", as("submit"), a.submit},
		{get, base + "/executions", as("list"), a.executions},
		{get, base + "/executions/:id", as("read"), a.execution},
		{post, base + "/executions/:id/cancel", as("cancel"), a.cancel},
		{get, base + "/executions/:id/events", as("read"), a.events},
		{get, base + "/executions/:id/artifacts", as("read"), a.artifacts},
		{get, base + "/executions/:id/artifacts/:filename", file, a.artifact},

		{get, base + "/approvals", as("list"), a.approvals},
		{get, base + "/approvals/:id", as("read"), a.approval},
		{post, base + "/approvals/:id/approve", decide, a.decide(anuencia.Approve)},
		{post, base + "/approvals/:id/reject", decide, a.decide(anuencia.Reject)},
		{post, "/aprobar", decide, a.decideNamed(anuencia.Approve)},
		{post, "/rechazar", decide, a.decideNamed(anuencia.Reject)},

		{get, base + "/audit/events", as("audit"), a.auditEvents},
		{get, base + "/audit/events/:id", as("audit"), a.auditEvent},
		{get, base + "/audit/executions/:id", as("audit"), a.reconstruction},

		{get, base + "/catalog/intents", as("catalog"), a.intents},
		{get, base + "/catalog/messages", as("catalog"), a.messages},

		{post, base + "/admin/tokens", as("admin"), a.createToken},
		{get, base + "/admin/tokens", as("admin"), a.tokens},
		{http.MethodDelete, base + "/admin/tokens/:id", as("admin"), a.revokeToken},

		{get, "/healthz", open, a.health},
		{get, "/readyz", open, a.ready},
		{get, "/metrics", as("operate"), a.metrics},
		{get, "/openapi.yaml", open, a.openapi},
		{get, "/docs", open, a.document},
	}
}
