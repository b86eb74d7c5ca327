package broker

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"
)

// What to do about answers that are not RabbitMQ's.
const (
	lookAtEndpoint = "Let the endpoint lead to RabbitMQ's management API, past everything that answers in its place, such as a login page"
	lookAtGateway  = "A proxy got no answer from RabbitMQ, or not in time: check that RabbitMQ runs with its plugin rabbitmq_management, " +
		"and that the proxy waits at least 40 seconds for an answer"
	lookAtPaths = "A proxy probably changes paths on the way: it must not decode %2F in them. " +
		"Let it pass them on as they are (nginx: proxy_pass without a path; Apache: AllowEncodedSlashes NoDecode, and ProxyPass with nocanon), " +
		"or set the endpoint to the management API itself"
	setCredentials = "RabbitMQ knows no such user with this password: set username and password in the configuration, " +
		"or RABBITMQ_USERNAME and RABBITMQ_PASSWORD in the environment"
)

// answer is what came back for a request.
type answer struct {
	method, path string
	status       int
	location     string // of a redirection
	content      []byte
	// read says that the content is what was asked for.
	read bool
}

// failure is an error if the answer is no success, or not the broker's.
func (a answer) failure() error {
	switch {
	case a.status < http.StatusMultipleChoices:
		return a.failedSuccess()
	case a.status < http.StatusBadRequest:
		return a.refusal("it redirects to " + a.location + "; set the endpoint to where it leads")
	default:
		return a.failedRequest()
	}
}

// failedSuccess finds a success that something else reports in RabbitMQ's place. RabbitMQ answers writes with 201
// or 204, and without a word.
func (a answer) failedSuccess() error {
	written := (a.status == http.StatusCreated || a.status == http.StatusNoContent) && len(a.content) == 0
	if a.read || written {
		return nil
	}
	return a.foreign(lookAtEndpoint)
}

// remedy says what to do about an answer that is RabbitMQ's own: 401 stands for unknown users and wrong passwords, which
// 3.10 and 4.3 tell in different words, as well as for missing tags and permissions.
func (a answer) remedy(reason string) string {
	switch {
	case a.status != http.StatusUnauthorized && a.status != http.StatusForbidden:
		return ""
	case slices.Contains([]string{"", "Login failed", "Not_Authorized"}, reason):
		return ". " + setCredentials
	case reason == "User not authorised to access virtual host":
		return ". " + grantVhost
	case reason == "Access refused.", strings.HasPrefix(reason, "ACCESS_REFUSED - "):
		return ". " + lacking(a.method, a.path)
	}
	return ". " + grantAccess
}

// failedRequest tells RabbitMQ's refusals from those of a proxy. RabbitMQ gives a reason in most of them; 400, 401, 405
// and 500 were seen without.
func (a answer) failedRequest() error {
	reason, ours := a.reason()
	switch a.status {
	case http.StatusProxyAuthRequired:
		return a.foreign("T" + loginAtProxy[1:])
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		if !ours {
			return a.foreign(lookAtGateway)
		}
	default:
		if !ours && (len(a.content) > 0 || a.status == http.StatusNotFound) {
			return a.foreign(a.lookAt())
		}
	}
	if remedy := a.remedy(reason); remedy != "" {
		reason = strings.TrimSuffix(reason, ".") + remedy
	}
	return a.refusal(reason)
}

// lookAt says what to do about an answer that is not RabbitMQ's: servers other than RabbitMQ tell those who come to their
// TLS port without TLS.
func (a answer) lookAt() string {
	text := strings.ToLower(string(a.content))
	if a.status == http.StatusBadRequest && strings.Contains(text, "http request") && strings.Contains(text, "https") {
		return "T" + writeHTTPS[1:]
	}
	return lookAtEndpoint
}

// reason finds the broker's words: a string in most answers, a list in some of 4.3. It reports whether the answer
// has the form of RabbitMQ's.
func (a answer) reason() (text string, ours bool) {
	var body struct {
		Error  string `json:"error"`
		Reason any    `json:"reason"`
	}
	if err := json.Unmarshal(a.content, &body); err != nil || body.Error == "" {
		return "", false
	}
	if a.status == http.StatusNotFound && (body.Reason == nil || !slices.Contains(notFound, body.Error)) {
		return "", false
	}
	if body.Reason == nil {
		return body.Error, true
	}
	if text, isText := body.Reason.(string); isText {
		return strings.TrimSpace(html.UnescapeString(text)), true // before 4.3, what it quotes is escaped for a page
	}
	list, err := json.Marshal(body.Reason)
	if err != nil {
		return body.Error, true
	}
	return string(list), true
}

// notFormed reports whether a declaration failed as [notFormed] says.
func (a answer) notFormed() bool {
	reason, _ := a.reason()
	return a.status == http.StatusBadRequest && strings.HasSuffix(reason, ": cluster_not_formed")
}

// notFound are RabbitMQ's words for 404, with a reason next to them: Erlang's for the status (which may become those of
// the standard), and its own where it answers a write. All of it was seen on 3.10 to 4.3.
var notFound = []string{"Object Not Found", "Not Found", "not_found"}

// decode reads the answer to a GET. Integers become json.Number.
func (a answer) decode(into any) error {
	decoder := json.NewDecoder(bytes.NewReader(a.content))
	decoder.UseNumber()
	err := decoder.Decode(into)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("more than one value")
	}
	if bytes.Equal(bytes.TrimSpace(a.content), []byte("null")) { // anything could be decoded from it
		err = errors.New("it is null")
	}
	if err != nil {
		return a.foreign(fmt.Sprintf("It cannot be read: %v. %s", err, lookAtEndpoint))
	}
	return nil
}

func (a answer) refusal(reason string) *Error {
	return &Error{Method: a.method, Path: a.path, Status: a.status, Reason: reason}
}

// foreign shows the beginning of the answer, by which its author can be recognised.
func (a answer) foreign(remedy string) *Error {
	text := strings.Join(strings.Fields(string(a.content)), " ")
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "…"
	}
	e := a.refusal(fmt.Sprintf("%q. %s", text, remedy))
	e.Foreign = true
	return e
}

// maxQuoted is how much of a foreign answer is shown, in bytes.
const maxQuoted = 150

// mistaken is an answer about something else than was asked for.
func mistaken(path, what, remedy string) *Error {
	return &Error{Method: http.MethodGet, Path: path, Status: http.StatusOK, Foreign: true, Reason: what + ". " + remedy}
}
