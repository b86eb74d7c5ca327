package broker

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
)

// Error is an answer that is no success, or that RabbitMQ did not give to this request.
type Error struct {
	Method string
	Path   string
	Status int
	// Reason is the broker's own words, or what speaks against the answer.
	Reason string
	// Foreign says that something in between, such as a proxy, gave the answer or changed the request: the
	// answer says nothing about the broker's objects.
	Foreign bool
}

// Error says what was asked and what the answer was.
func (e *Error) Error() string {
	who := "the broker answered"
	if e.Foreign {
		who = "not answered by RabbitMQ as it was asked:"
	}
	return fmt.Sprintf("%s %s: %s %d %s: %s", e.Method, e.Path, who, e.Status, http.StatusText(e.Status), e.Reason)
}

// IsNotFound reports whether the broker answered that something does not exist. Brokers from 4.2.9
// and 4.3.3 on answer the same to a user who may not see the vhost.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsUnauthorized reports whether the broker refused the user, or the user's permissions: the
// management API answers 401 to both.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsUnanswered reports whether the outcome of a write is unknown: there was no answer, or one that a
// cluster without majority gives, after which the write may still take effect, or a success that the
// broker did not report itself.
func IsUnanswered(err error) bool {
	var answer *Error
	if !errors.As(err, &answer) {
		return err != nil && !errors.Is(err, errNotSent)
	}
	switch {
	case answer.Status >= http.StatusInternalServerError, answer.Status == http.StatusRequestTimeout:
		return true
	case answer.Foreign:
		return answer.Status < http.StatusMultipleChoices
	default:
		return answer.Status == http.StatusBadRequest && outOfTime.MatchString(answer.Reason)
	}
}

// outOfTime are the reasons that a broker gives with 400 for a write that it did not finish in time, as in a cluster without
// majority. RabbitMQ quotes names, so none of them can end or begin a reason like this.
var outOfTime = regexp.MustCompile(`((operation|store) timed out|due to( a)? timeout)$|` +
	`^Request to node \S+ failed with (\{'EXIT',)?\{*timeout\b`)

// hasStatus reports whether the broker itself answered with the status.
func hasStatus(err error, status int) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == status && !answer.Foreign
}
