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

// CanWritePolicies tells whether the user may create policies.
func (u User) CanWritePolicies() bool {
	return slices.Contains(u.Tags, "policymaker") || slices.Contains(u.Tags, "administrator")
}

// seesEveryVhost tells whether the broker lists every vhost to the user, not only those that the
// user has permissions in (rabbit_mgmt_util:list_visible_vhosts).
func (u User) seesEveryVhost() bool {
	return slices.Contains(u.Tags, "monitoring") || slices.Contains(u.Tags, "administrator")
}

// User asks the broker who the client is.
func (c *Client) User(ctx context.Context) (User, error) {
	var info rabbithole.WhoamiInfo
	err := c.get(ctx, path("whoami"), &info)
	return User{Name: info.Name, Tags: info.Tags}, err
}

// VhostGone tells whether a vhost is known not to exist. A user who sees only some of the vhosts
// cannot know: to such a user false is returned for what is merely out of sight.
func (c *Client) VhostGone(ctx context.Context, vhost string) (bool, error) {
	user, err := c.User(ctx)
	if err != nil || !user.seesEveryVhost() {
		return false, err
	}
	visible, err := c.Vhosts(ctx)
	return err == nil && !slices.Contains(visible, vhost), err
}

// Vhosts lists the vhosts that the user may see.
func (c *Client) Vhosts(ctx context.Context) ([]string, error) {
	var visible []struct {
		Name string `json:"name"`
	}
	if err := c.get(ctx, path("vhosts")+"?columns=name", &visible); err != nil {
		return nil, err
	}
	names := make([]string, len(visible))
	for i, v := range visible {
		names[i] = v.Name
	}
	return names, nil
}
