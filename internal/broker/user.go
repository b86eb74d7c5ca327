package broker

import (
	"context"
	"slices"

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

// User asks the broker who the client is.
func (c *Client) User(ctx context.Context) (User, error) {
	var info rabbithole.WhoamiInfo
	if err := c.get(ctx, path("whoami"), &info); err != nil {
		return User{}, err
	}
	if info.Name == "" {
		return User{}, mistaken(path("whoami"), "the user has no name", lookAtEndpoint)
	}
	return User{Name: info.Name, Tags: info.Tags}, nil
}
