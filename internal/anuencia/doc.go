// Package anuencia holds the domain of the governed harness: executions,
// approvals, actors, risk, policy decisions, faults and audit events, with the
// pure transitions between their states.
//
// Nothing here knows a transport, a database, a clock or a logger: callers pass
// the time and the ids in. A zero value never means allowed.
package anuencia
