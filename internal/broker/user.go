package broker

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// User is who the client is to the broker.
type User struct {
	Name string
	Tags []string
}

// CanWritePolicies reports whether the user may create policies.
func (u User) CanWritePolicies() bool {
	return slices.Contains(u.Tags, "policymaker") || slices.Contains(u.Tags, "administrator")
}

// seesEveryVhost reports whether the broker lists every vhost to the user, not only those that the
// user has permissions in (rabbit_mgmt_util:list_visible_vhosts).
func (u User) seesEveryVhost() bool {
	return slices.Contains(u.Tags, "monitoring") || slices.Contains(u.Tags, "administrator")
}

// elsewhere says of a 404 what to do about it: every management API knows who asks, so there is none at this address.
func (c *Client) elsewhere(err error) error {
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != http.StatusNotFound {
		return err
	}
	mistaken := *answer
	mistaken.Foreign = true
	mistaken.Reason = "there is no management API below " + c.base + ". "
	if strings.HasSuffix(c.base, "/api") {
		mistaken.Reason += "Let the endpoint end before /api"
	} else {
		mistaken.Reason += "Let the endpoint be its address alone, such as http://localhost:15672, " +
			"with the prefix if RabbitMQ's management.path_prefix, or a proxy, sets one"
	}
	return &mistaken
}

// User asks the broker who the client is. One that is not RabbitMQ is an error, as of [Client.Product].
func (c *Client) User(ctx context.Context) (User, error) {
	var info rabbithole.WhoamiInfo
	if err := c.get(ctx, path("whoami"), &info); err != nil {
		return User{}, c.elsewhere(err)
	}
	if info.Name == "" {
		return User{}, mistaken(path("whoami"), "the user has no name", lookAtEndpoint)
	}
	_, err := c.Product(ctx)
	return User{Name: info.Name, Tags: info.Tags}, err
}
