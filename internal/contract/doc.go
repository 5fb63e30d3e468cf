// Package contract encodes the two contracts that leave the server, the standard
// result and the standard error, and holds the one mapping from a fault to its
// code, HTTP status, message and details (contracts section 1). It knows no
// router and no use case: it takes values and gives bytes.
package contract
