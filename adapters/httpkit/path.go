package httpkit

import (
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
)

// plainPath refuses what routers and proxies clean or decode in different ways:
// dots, encoded slashes and dots, doubled slashes, backslashes, NUL.
func plainPath(p string) bool {
	lower := strings.ToLower(p)
	for _, bad := range []string{"..", "//", "%2f", "%2e", "%5c", "%00", "\\", "/./"} {
		if strings.Contains(lower, bad) {
			return false
		}
	}
	return !strings.HasSuffix(lower, "/.")
}

func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// traceID reads the trace id of a W3C traceparent header; "" for one that is
// absent or malformed.
func traceID(r *http.Request) string {
	const form = len("00-0123456789abcdef0123456789abcdef-0123456789abcdef-01")
	h := r.Header.Get("Traceparent")
	if len(h) != form || h[2] != '-' || h[35] != '-' || h[52] != '-' {
		return ""
	}
	id := h[3:35]
	if strings.Trim(id, "0123456789abcdef") != "" || strings.Trim(id, "0") == "" {
		return ""
	}
	return id
}

// cors answers for the origins on the list, and says whether the request was a
// preflight and is done. Credentials of a browser (cookies) are never allowed:
// callers send a bearer credential.
func (k *Kit) cors(g *gin.Context) bool {
	origin := g.GetHeader("Origin")
	if len(k.o.CORSOrigins) == 0 || !isAPI(g.Request.URL.Path) {
		return false
	}
	h := g.Writer.Header()
	h.Add("Vary", "Origin")
	if origin == "" || !slices.Contains(k.o.CORSOrigins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "Location, Retry-After, X-Request-Id, UHP-Version")
	if g.Request.Method != http.MethodOptions || g.GetHeader("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	h.Set("Access-Control-Allow-Headers",
		"Authorization, Content-Type, Idempotency-Key, Anuencia-Actor, Prefer, Accept-Language, Traceparent, UHP-Version")
	h.Set("Access-Control-Max-Age", "600")
	g.AbortWithStatus(http.StatusNoContent)
	return true
}

// isAPI: the list of origins is for the two APIs, not for pages and probes.
func isAPI(path string) bool {
	return strings.HasPrefix(path, "/api/v1/") || strings.HasPrefix(path, "/v1/")
}
