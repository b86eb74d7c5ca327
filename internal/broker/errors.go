package broker

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// Error is an answer of 400 or above.
type Error struct {
	Method string
	Path   string
	Status int
	// Reason is the broker's own words.
	Reason string
}

// Error says what was asked and what the broker answered.
func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: the broker answered %d %s: %s", e.Method, e.Path, e.Status, http.StatusText(e.Status), e.Reason)
}

// IsNotFound reports whether the broker answered that something does not exist. Brokers from 4.2.9
// and 4.3.3 on answer the same to a user who may not see the vhost.
func IsNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

// IsUnauthorized reports whether the broker refused the user, or the user's permissions: the
// management API answers 401 to both.
func IsUnauthorized(err error) bool { return hasStatus(err, http.StatusUnauthorized) }

// IsUnanswered reports whether the outcome of a write is unknown: there was no answer, or one that a
// cluster without majority gives, after which the write may still take effect.
func IsUnanswered(err error) bool {
	var answer *Error
	if !errors.As(err, &answer) {
		return err != nil && !errors.Is(err, errNotSent)
	}
	return answer.Status >= http.StatusInternalServerError ||
		strings.Contains(answer.Reason, "timed out") || strings.Contains(answer.Reason, "timeout")
}

func hasStatus(err error, status int) bool {
	var answer *Error
	return errors.As(err, &answer) && answer.Status == status
}

func newError(method, path string, status int, content []byte) *Error {
	return &Error{Method: method, Path: path, Status: status, Reason: reason(content)}
}

// reason finds the broker's words: a string in most answers, a list in some of 4.3.
func reason(content []byte) string {
	var body struct {
		Error  string `json:"error"`
		Reason any    `json:"reason"`
	}
	if err := json.Unmarshal(content, &body); err != nil || body.Reason == nil {
		return strings.TrimSpace(body.Error)
	}
	if text, isText := body.Reason.(string); isText {
		return text
	}
	text, err := json.Marshal(body.Reason)
	if err != nil {
		return body.Error
	}
	return string(text)
}
