package contract

import (
	"net/http"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
)

// Pair is a code with one of its reasons, "" for the code by itself, and the
// HTTP status of a request that fails with it.
type Pair struct {
	Code   anuencia.Code
	Reason anuencia.Reason
	Status int
}

// Pairs is the one table of what can be emitted. Nothing else ever is: an
// unknown code is INTERNAL_ERROR, an unknown reason is left out.
func Pairs() []Pair {
	return []Pair{
		{anuencia.CodePolicyDenied, "", http.StatusForbidden},
		{anuencia.CodeIdentityNotFound, "", http.StatusForbidden},
		{anuencia.CodeIdentityNotFound, anuencia.ReasonCredential, http.StatusUnauthorized},
		{anuencia.CodeIdentityNotFound, anuencia.ReasonActor, http.StatusForbidden},
		{anuencia.CodeToolNotAllowed, "", http.StatusForbidden},
		{anuencia.CodeRateLimited, "", http.StatusTooManyRequests},
		{anuencia.CodeValidation, "", http.StatusUnprocessableEntity},
		{anuencia.CodeValidation, anuencia.ReasonMalformed, http.StatusBadRequest},
		{anuencia.CodeValidation, anuencia.ReasonSchema, http.StatusUnprocessableEntity},
		{anuencia.CodeValidation, anuencia.ReasonNotFound, http.StatusNotFound},
		{anuencia.CodeValidation, anuencia.ReasonMethod, http.StatusMethodNotAllowed},
		{anuencia.CodeValidation, anuencia.ReasonMediaType, http.StatusUnsupportedMediaType},
		{anuencia.CodeValidation, anuencia.ReasonTooLarge, http.StatusRequestEntityTooLarge},
		{anuencia.CodeValidation, anuencia.ReasonKeyReused, http.StatusUnprocessableEntity},
		{anuencia.CodeValidation, anuencia.ReasonUnknownIntent, http.StatusUnprocessableEntity},
		{anuencia.CodeValidation, anuencia.ReasonActorMismatch, http.StatusUnprocessableEntity},
		{anuencia.CodeValidation, anuencia.ReasonDecided, http.StatusConflict},
		{anuencia.CodeValidation, anuencia.ReasonExpired, http.StatusConflict},
		{anuencia.CodeValidation, anuencia.ReasonWithdrawn, http.StatusConflict},
		{anuencia.CodeValidation, anuencia.ReasonSuperseded, http.StatusConflict},
		{anuencia.CodeValidation, anuencia.ReasonSubjectMismatch, http.StatusConflict},
		{anuencia.CodeValidation, anuencia.ReasonReasonRequired, http.StatusUnprocessableEntity},
		{anuencia.CodeInternal, "", http.StatusInternalServerError},
		{anuencia.CodeInternal, anuencia.ReasonUnavailable, http.StatusServiceUnavailable},
		{anuencia.CodeInternal, anuencia.ReasonOutcomeUnknown, http.StatusInternalServerError},
		// A rejection is an answer, not a failure of the request.
		{anuencia.CodeApprovalRejected, "", http.StatusOK},
		{anuencia.CodeApprovalRejected, anuencia.ReasonRejected, http.StatusOK},
		{anuencia.CodeApprovalRejected, anuencia.ReasonWithdrawn, http.StatusOK},
		{anuencia.CodeTimeout, "", http.StatusGatewayTimeout},
		{anuencia.CodeTimeout, anuencia.ReasonTool, http.StatusGatewayTimeout},
		{anuencia.CodeTimeout, anuencia.ReasonModel, http.StatusGatewayTimeout},
		{anuencia.CodeTimeout, anuencia.ReasonExecution, http.StatusGatewayTimeout},
		{anuencia.CodeTimeout, anuencia.ReasonBudget, http.StatusGatewayTimeout},
		{anuencia.CodeTimeout, anuencia.ReasonApprovalExpired, http.StatusGatewayTimeout},
		// Somebody cancelled it elsewhere: the submitter's own request did not time out.
		{anuencia.CodeTimeout, anuencia.ReasonCancelled, http.StatusOK},
	}
}

// Status is the HTTP status of a request that itself failed with the code and
// reason. An unknown reason has the status of its code, an unknown code 500.
func Status(code anuencia.Code, reason anuencia.Reason) int {
	return find(code, reason).Status
}

func find(code anuencia.Code, reason anuencia.Reason) Pair {
	found := Pair{Code: anuencia.CodeInternal, Status: http.StatusInternalServerError}
	for _, p := range Pairs() {
		if p.Code != code {
			continue
		}
		if p.Reason == reason {
			return p
		}
		if p.Reason == "" {
			found = p
		}
	}
	return found
}
