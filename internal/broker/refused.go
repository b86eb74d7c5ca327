package broker

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// RefusedError is a connection to a vhost that RabbitMQ refused because of limits. The management API connects over AMQP
// to look into a queue, and to nothing else that is done here.
type RefusedError struct {
	Vhost string
	// Limits are those that are set, in words.
	Limits []string
}

// Error names the limits.
func (e *RefusedError) Error() string {
	return fmt.Sprintf("RabbitMQ refused a connection to the vhost %q: %s. Raise the limit, or close connections",
		e.Vhost, strings.Join(e.Limits, ", "))
}

// refusedAs is the limit that a connection was refused by, or the error itself. RabbitMQ says no more than this then;
// a permission that is missing is named.
func (c *Client) refusedAs(ctx context.Context, vhost string, err error) error {
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != http.StatusUnauthorized || !strings.HasPrefix(answer.Reason, "Access refused.") {
		return err
	}
	var limits []string
	for _, of := range []struct{ path, name string }{
		{path("vhost-limits", vhost), "of the vhost"},
		{path("user-limits", c.username), fmt.Sprintf("of the user %q", c.username)},
	} {
		if limit, isSet := c.connectionLimit(ctx, of.path); isSet {
			limits = append(limits, fmt.Sprintf("the limit max-connections %s is %d", of.name, limit))
		}
	}
	if len(limits) == 0 {
		return err
	}
	return &RefusedError{Vhost: vhost, Limits: limits}
}

// connectionLimit is a limit of connections, if there is one that the user may see.
func (c *Client) connectionLimit(ctx context.Context, path string) (limit int64, isSet bool) {
	var found []struct {
		Value map[string]int64 `json:"value"`
	}
	if c.get(ctx, path, &found) != nil || len(found) == 0 {
		return 0, false
	}
	limit, isSet = found[0].Value["max-connections"]
	return limit, isSet && limit >= 0
}
