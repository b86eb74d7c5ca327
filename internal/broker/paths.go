package broker

import (
	"context"
	"errors"
	"net/http"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// escapedSlash is a slash within a name. RabbitMQ tells it from those between names; proxies often do not.
const escapedSlash = "%2F"

// explain finds out whether an answer is about something else than what was asked for, since a proxy decodes slashes
// in names: what is asked for exists nowhere then, and RabbitMQ truthfully answers so.
func (c *Client) explain(ctx context.Context, err error) error {
	var answer *Error
	if !errors.As(err, &answer) || !strings.Contains(answer.Path, escapedSlash) || !answer.mayBeMistaken() {
		return err
	}
	if cause := c.requirePathsKept(ctx); cause != nil {
		mistaken := *answer
		mistaken.Reason, mistaken.Foreign = cause.Error(), true
		return &mistaken
	}
	return err
}

// mayBeMistaken reports whether the answer is one that a changed path gets.
func (e *Error) mayBeMistaken() bool {
	return e.Status < http.StatusMultipleChoices || e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed
}

// requirePathsKept is an error unless slashes in names arrive as they are sent. A path that only exists decoded shows
// whether they do.
func (c *Client) requirePathsKept(ctx context.Context) error {
	if c.pathsKept.Load() {
		return nil
	}
	probe := path("whoami") + escapedSlash
	var user rabbithole.WhoamiInfo
	_, err := c.send(context.WithValue(ctx, readOnly{}, &reading{}), http.MethodGet, probe, nil, &user)
	var answer *Error
	switch {
	case err == nil:
		return mistaken(probe, "%2F is decoded on the way, so RabbitMQ is asked for something else", lookAtPaths)
	case errors.As(err, &answer) && answer.Status < http.StatusInternalServerError:
		c.pathsKept.Store(true)
		return nil
	default:
		return err
	}
}
