package broker

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Remedies for answers that are not RabbitMQ's.
const (
	lookAtEndpoint = "Set the endpoint to RabbitMQ's management API itself, past servers that answer in its place, such as a login page"
	lookAtGateway  = "A proxy got no answer from RabbitMQ in time. Check that RabbitMQ runs with its plugin rabbitmq_management, " +
		"and that the proxy waits at least 40 seconds for an answer"
	lookAtPaths = "A proxy probably changes paths: it must not decode %2F in them. " +
		"In nginx, write proxy_pass without a path. In Apache, write AllowEncodedSlashes NoDecode, and ProxyPass with nocanon. " +
		"Or set the endpoint to the management API itself"
	setCredentials = "RabbitMQ does not accept this user and password: set username and password in the configuration, " +
		"or RABBITMQ_USERNAME and RABBITMQ_PASSWORD in the environment"
)

// answer is the answer to a request.
type answer struct {
	method, path string
	status       int
	location     string // if it redirects
	// content is the whole answer, or its beginning if it is a success to decode.
	content []byte
	// read says that the request reads, so the answer must have content.
	read bool
	// secrets are parts of the request that no error can repeat.
	secrets []string
}

// failure returns an error if the answer is no success, or is not the broker's.
func (a answer) failure() error {
	switch {
	case a.status < http.StatusMultipleChoices:
		// RabbitMQ answers writes with 201 or 204 and no content. Any other success is another server's.
		written := (a.status == http.StatusCreated || a.status == http.StatusNoContent) && len(a.content) == 0
		if !a.read && !written {
			return a.foreign(lookAtEndpoint)
		}
		return nil
	case a.status < http.StatusBadRequest:
		return a.refusal("it redirects to " + a.location + ". Set the endpoint to that address")
	default:
		return a.failedRequest()
	}
}

// remedy says what to do about RabbitMQ's own answer. 401 means unknown users and wrong passwords, with different words
// in 3.10 and 4.3, and also missing tags and permissions.
func (a answer) remedy(reason string) string {
	switch {
	case a.status != http.StatusUnauthorized && a.status != http.StatusForbidden:
		return ""
	case slices.Contains([]string{"", "Login failed", "Not_Authorized"}, reason):
		return ". " + setCredentials
	case reason == "User not authorised to access virtual host":
		return ". " + grantVhost
	case reason == noAccess, strings.HasPrefix(reason, "ACCESS_REFUSED - "):
		return ". " + lacking(a.path)
	case lackedTags[reason] != "":
		return ". The user needs the tag " + lackedTags[reason] + ": see rabbitmqctl set_user_tags, which replaces the present tags"
	}
	return ". " + grantAccess
}

// lackedTags are the tags that a user lacks, by the broker's reason (3.10.8 to 4.3.6).
var lackedTags = map[string]string{
	"Not management user": "management", "User not authorised to access object": "policymaker",
	"Not monitor user": "monitoring", "Not administrator user": "administrator",
}

// failedRequest tells RabbitMQ's refusals from a proxy's. RabbitMQ usually gives a reason, but sends some 400, 401, 405
// and 500 answers without one.
func (a answer) failedRequest() error {
	reason, ours := a.reason()
	if a.repeatsSecret(reason) {
		reason = "the reason is not shown, because it repeats a password, its hash or a URI"
	}
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

// lookAt says what to do about an answer that is not RabbitMQ's. Other servers explain when a client uses their TLS
// port without TLS.
func (a answer) lookAt() string {
	text := strings.ToLower(string(a.content))
	if a.status == http.StatusBadRequest && strings.Contains(text, "http request") && strings.Contains(text, "https") {
		return "T" + writeHTTPS[1:]
	}
	return lookAtEndpoint
}

// reason returns the broker's reason. ours reports whether the answer has RabbitMQ's form.
func (a answer) reason() (text string, ours bool) {
	var body struct {
		Error  any `json:"error"`
		Reason any `json:"reason"`
	}
	if err := json.Unmarshal(a.content, &body); err != nil {
		return "", false
	}
	kind, isText := erlangText(body.Error)
	if !isText || kind == "" {
		return "", false
	}
	if a.status == http.StatusNotFound && (body.Reason == nil || !slices.Contains(notFound, kind)) {
		return "", false
	}
	if body.Reason == nil {
		return kind, true
	}
	if text, isText := erlangText(body.Reason); isText {
		return strings.TrimSpace(html.UnescapeString(text)), true // before 4.3, quoted text is escaped for HTML
	}
	list, _ := json.Marshal(body.Reason) // it was read from JSON
	return string(list), true
}

// erlangText is a text, which some answers have as a list of characters.
func erlangText(value any) (text string, is bool) {
	if text, is = value.(string); is {
		return text, true
	}
	characters, _ := value.([]any)
	for _, element := range characters {
		character, isNumber := element.(float64)
		if !isNumber {
			return "", false
		}
		text += string(rune(character))
	}
	return text, len(characters) > 0
}

// notFormed reports whether a declaration failed as the function [notFormed] describes.
func (a answer) notFormed() bool {
	reason, _ := a.reason()
	return a.status == http.StatusBadRequest && strings.HasSuffix(reason, ": cluster_not_formed")
}

// notFound has RabbitMQ's error texts for 404 answers with a reason. Erlang's text for the status can change to the
// standard's, and RabbitMQ has its own for writes. All were seen on 3.10 to 4.3.
var notFound = []string{"Object Not Found", "Not Found", "not_found"}

// elements reads a list one object at a time, because a vhost can have 100,000.
type elements[T any] func(T)

func (e elements[T]) decode(decoder *json.Decoder) error {
	if begin, err := decoder.Token(); err != nil || begin != json.Delim('[') {
		return cmp.Or(err, errors.New("it is not a list"))
	}
	for decoder.More() {
		var element T
		if err := decoder.Decode(&element); err != nil {
			return err
		}
		e(element)
	}
	_, err := decoder.Token()
	return err
}

// decode reads the answer to a GET from its body. Integers become json.Number.
func (a answer) decode(body io.Reader, into any) error {
	decoder := json.NewDecoder(body)
	decoder.UseNumber()
	var err error
	if list, is := into.(interface {
		decode(decoder *json.Decoder) error
	}); is {
		err = list.decode(decoder)
	} else {
		err = decoder.Decode(into)
	}
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = errors.New("more than one value")
	}
	if bytes.Equal(bytes.TrimSpace(a.content), []byte("null")) { // null decodes into any value
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

// foreign returns an error with the beginning of the answer, so that users can recognise the server.
func (a answer) foreign(remedy string) *Error {
	text := strings.Join(strings.Fields(string(a.content)), " ")
	if len(text) > maxQuoted {
		text = text[:maxQuoted] + "…"
	}
	text = fmt.Sprintf("%q. ", text)
	if len(a.secrets) > 0 { // another server can repeat it in any form
		text = "The answer is not shown, because it can repeat a password. "
	}
	e := a.refusal(text + remedy)
	e.Foreign = true
	return e
}

// secretsKey marks the context of a request with secrets, which are its value.
type secretsKey struct{}

// repeatsSecret reports whether a text has one of the secrets, as it is or encoded.
func (a answer) repeatsSecret(text string) bool {
	return slices.ContainsFunc(a.secrets, func(secret string) bool {
		encoded, err := json.Marshal(secret)
		forms := []string{secret, strings.Trim(string(encoded), `"`), html.EscapeString(secret), url.QueryEscape(secret)}
		return secret != "" && (err != nil || slices.ContainsFunc(forms, func(form string) bool { return strings.Contains(text, form) }))
	})
}

// maxQuoted limits the quoted part of a foreign answer, in bytes.
const maxQuoted = 150

// mistaken returns an error for an answer about another object.
func mistaken(path, what, remedy string) *Error {
	return &Error{Method: http.MethodGet, Path: path, Status: http.StatusOK, Foreign: true, Reason: what + ". " + remedy}
}
