package broker

import (
	"context"
	"slices"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// Permission has the patterns of the names that a user can configure, write to and read from in a vhost.
type Permission struct {
	Configure string `json:"configure"`
	Write     string `json:"write"`
	Read      string `json:"read"`
}

// TopicPermission has the patterns of the routing keys that a user can publish with, and bind with, at a topic exchange.
type TopicPermission struct {
	Write, Read string
}

// Grant is the user, and the vhost, of permissions.
type Grant struct{ Vhost, User string }

// Permissions lists the permissions of all users.
func (c *Client) Permissions(ctx context.Context) (map[Grant]Permission, error) {
	var listed []rabbithole.PermissionInfo
	err := c.get(ctx, path("permissions"), &listed)
	all := map[Grant]Permission{}
	for _, p := range listed {
		all[Grant{p.Vhost, p.User}] = Permission{p.Configure, p.Write, p.Read}
	}
	return all, err
}

// Permission reads a user's permissions in a vhost.
func (c *Client) Permission(ctx context.Context, of Grant) (permission Permission, exists bool, err error) {
	err = c.get(ctx, path("permissions", of.Vhost, of.User), &permission)
	return permission, err == nil, missing(err)
}

// PutPermission writes a user's permissions in a vhost, and reports whether there were none.
func (c *Client) PutPermission(ctx context.Context, of Grant, permission Permission) (bool, error) {
	return c.put(ctx, path("permissions", of.Vhost, of.User), permission)
}

// DeletePermission takes a user's permissions in a vhost away.
func (c *Client) DeletePermission(ctx context.Context, of Grant) error {
	return c.delete(ctx, of.Vhost, path("permissions", of.Vhost, of.User))
}

// TopicPermissions lists the topic permissions of all users, by exchange.
func (c *Client) TopicPermissions(ctx context.Context) (map[Grant]map[string]TopicPermission, error) {
	return c.topicPermissions(ctx, path("topic-permissions"))
}

// TopicPermissionsOf lists a user's topic permissions in a vhost, by exchange.
func (c *Client) TopicPermissionsOf(ctx context.Context, of Grant) (map[string]TopicPermission, error) {
	all, err := c.topicPermissions(ctx, path("topic-permissions", of.Vhost, of.User))
	return all[of], missing(err)
}

func (c *Client) topicPermissions(ctx context.Context, path string) (map[Grant]map[string]TopicPermission, error) {
	var listed []rabbithole.TopicPermissionInfo
	err := c.get(ctx, path, &listed)
	all := map[Grant]map[string]TopicPermission{}
	for _, p := range listed {
		of := Grant{p.Vhost, p.User}
		if all[of] == nil {
			all[of] = map[string]TopicPermission{}
		}
		all[of][p.Exchange] = TopicPermission{p.Write, p.Read}
	}
	return all, err
}

// PutTopicPermission writes a user's topic permission at an exchange.
func (c *Client) PutTopicPermission(ctx context.Context, of Grant, exchange string, permission TopicPermission) error {
	body := rabbithole.TopicPermissions{Exchange: exchange, Write: permission.Write, Read: permission.Read}
	_, err := c.put(ctx, path("topic-permissions", of.Vhost, of.User), body)
	return err
}

// DeleteTopicPermissions takes all topic permissions of a user in a vhost away.
func (c *Client) DeleteTopicPermissions(ctx context.Context, of Grant) error {
	return c.delete(ctx, of.Vhost, path("topic-permissions", of.Vhost, of.User))
}

// Account is a user as the broker stores it. Without a hash, the user cannot log in with a password.
type Account struct {
	Tags         []string
	PasswordHash string
	// HashHidden says that the broker does not return the hash, as from 4.4 on.
	HashHidden bool
	// HashingAlgorithm is a module of the broker, such as rabbit_password_hashing_sha256.
	HashingAlgorithm string
}

type accountInfo struct {
	rabbithole.UserInfo
	PasswordHash *string `json:"password_hash"`
}

func (i accountInfo) account() Account {
	// On old brokers, the tags are a text, which has one empty tag if there is none.
	tags := slices.DeleteFunc(i.Tags, func(tag string) bool { return tag == "" })
	account := Account{
		Tags: slices.Sorted(slices.Values(tags)), HashHidden: i.PasswordHash == nil, HashingAlgorithm: string(i.HashingAlgorithm),
	}
	if i.PasswordHash != nil {
		account.PasswordHash = *i.PasswordHash
	}
	return account
}

// Accounts lists the users by name.
func (c *Client) Accounts(ctx context.Context) (map[string]Account, error) {
	var listed []accountInfo
	err := c.get(ctx, path("users"), &listed)
	all := map[string]Account{}
	for _, i := range listed {
		all[i.Name] = i.account()
	}
	return all, err
}

// Account reads a user.
func (c *Client) Account(ctx context.Context, name string) (account Account, exists bool, err error) {
	var info accountInfo
	err = c.get(ctx, path("users", name), &info)
	return info.account(), err == nil, missing(err)
}

// PutAccount creates or changes a user, and reports whether it is new. A password that is not nil replaces the hash.
func (c *Client) PutAccount(ctx context.Context, name string, account Account, password *string) (bool, error) {
	body := map[string]any{"tags": strings.Join(account.Tags, ",")}
	secret := account.PasswordHash
	if password != nil {
		secret = *password
		body["password"] = secret
	} else {
		body["password_hash"] = secret
		if account.HashingAlgorithm != "" {
			body["hashing_algorithm"] = account.HashingAlgorithm
		}
	}
	return c.put(context.WithValue(ctx, secretsKey{}, []string{secret}), path("users", name), body)
}

// DeleteAccount deletes a user with its permissions.
func (c *Client) DeleteAccount(ctx context.Context, name string) error {
	return c.delete(ctx, "", path("users", name))
}
