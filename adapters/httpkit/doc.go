// Package httpkit is the one edge that every HTTP surface shares: the id of a
// request, who calls, strict bodies, limits, and the one way in which a result
// or a fault is written. It has no rule of its own.
package httpkit
