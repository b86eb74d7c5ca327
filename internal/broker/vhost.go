package broker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"
)

// vhostList is a list of vhosts. A vhost that is being deleted appears as an empty list, or without a name (seen on
// 3.10 and 4.3).
type vhostList []rabbithole.VhostInfo

// UnmarshalJSON leaves out vhosts that are being deleted.
func (l *vhostList) UnmarshalJSON(text []byte) error {
	var listed []json.RawMessage
	if err := json.Unmarshal(text, &listed); err != nil {
		return err
	}
	for _, element := range listed {
		if string(element) == "[]" {
			continue
		}
		var v rabbithole.VhostInfo
		if err := json.Unmarshal(element, &v); err != nil {
			return err
		}
		if v.Name != "" {
			*l = append(*l, v)
		}
	}
	return nil
}

// vhosts lists the vhosts that the user can see. It asks without statistics, because with them brokers fail if a vhost
// is being deleted.
func (c *Client) vhosts(ctx context.Context) (vhostList, error) {
	var listed vhostList
	err := c.get(ctx, path("vhosts")+"?disable_stats=true&columns=name,cluster_state,description,tags,default_queue_type,tracing", &listed)
	return listed, err
}

// Vhosts lists the names of the vhosts that the user can see.
func (c *Client) Vhosts(ctx context.Context) ([]string, error) {
	listed, err := c.vhosts(ctx)
	var names []string
	for _, v := range listed {
		names = append(names, v.Name)
	}
	return names, err
}

// Look returns an error if the user cannot see the vhost's objects. It reads an exchange that every vhost has and that
// cannot be deleted.
func (c *Client) Look(ctx context.Context, vhost string) error {
	return c.get(ctx, path("exchanges", vhost, "amq.direct"), &struct{}{})
}

// VhostGone reports whether a vhost is known not to exist. If the user sees only some vhosts, it returns false, because
// the vhost can be hidden.
func (c *Client) VhostGone(ctx context.Context, vhost string) (bool, error) {
	user, err := c.User(ctx)
	if err != nil || !user.seesEveryVhost() {
		return false, err
	}
	visible, err := c.Vhosts(ctx)
	return err == nil && !slices.Contains(visible, vhost), err
}

// Absent returns nil if an object of a vhost does not exist, as the broker has answered. If the user cannot see the vhost, the
// error is *HiddenError.
func (c *Client) Absent(ctx context.Context, vhost string, notFound error) error {
	if err := c.Look(ctx, vhost); !IsNotFound(err) {
		return err
	}
	if gone, err := c.VhostGone(ctx, vhost); err != nil || !gone {
		return &hiddenError{vhost, errors.Join(notFound, err)}
	}
	return nil
}

// User is the broker's description of the client's user.
type User struct {
	Name string
	Tags []string
}

// CanWritePolicies reports whether the user can create policies.
func (u User) CanWritePolicies() bool {
	return slices.Contains(u.Tags, "policymaker") || slices.Contains(u.Tags, "administrator")
}

// seesEveryVhost reports whether the broker lists every vhost to the user. To other users it lists only vhosts that
// they have permissions in (rabbit_mgmt_util:list_visible_vhosts).
func (u User) seesEveryVhost() bool {
	return slices.Contains(u.Tags, "monitoring") || slices.Contains(u.Tags, "administrator")
}

// elsewhere adds a remedy to a 404. Every management API knows this path, so there is no management API at the address.
func (c *Client) elsewhere(err error) error {
	var answer *Error
	if !errors.As(err, &answer) || answer.Status != http.StatusNotFound {
		return err
	}
	mistaken := *answer
	mistaken.Foreign = true
	mistaken.Reason = "there is no management API below " + c.base + ". "
	if strings.HasSuffix(c.base, "/api") {
		mistaken.Reason += "Remove /api from the end of the endpoint"
	} else {
		mistaken.Reason += "Set the endpoint to the address of the API alone, such as http://localhost:15672. " +
			"If RabbitMQ's management.path_prefix or a proxy sets a prefix, add it"
	}
	return &mistaken
}

// User asks the broker who the client is. If the broker is not RabbitMQ, it fails like [Client.Product].
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

// VhostSettings are a vhost's own properties. An empty default queue type is the node's default, and a limit that is not set is
// missing. Before 3.11, brokers ignore the default queue type.
type VhostSettings struct {
	Description      string
	Tags             []string
	DefaultQueueType string
	Tracing          bool
	// Limits has the keys max-connections and max-queues.
	Limits map[string]int64
}

// VhostSettings lists the settings of the vhosts that the user can see.
func (c *Client) VhostSettings(ctx context.Context) (map[string]VhostSettings, error) {
	listed, err := c.vhosts(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.noteNodes(ctx, listed); err != nil {
		return nil, err
	}
	limits, err := c.Limits(ctx, VhostLimits)
	if err != nil {
		return nil, err
	}
	all := map[string]VhostSettings{}
	for _, v := range listed {
		if v.DefaultQueueType == "undefined" {
			v.DefaultQueueType = ""
		}
		all[v.Name] = VhostSettings{v.Description, v.Tags, v.DefaultQueueType, v.Tracing, limits[v.Name]}
	}
	return all, nil
}

// vhostTimeout covers the write of a vhost, up to 30 seconds. It also covers the 45 seconds in which a broker waits for the vhost to run on
// all nodes.
const vhostTimeout = 80 * time.Second

// PutVhost creates or changes a vhost, without its limits and its tracing, and reports whether it is new. The creator of a vhost gets
// all permissions in it, but only at the end of the request (put_vhost in rabbit_vhost.erl).
func (c *Client) PutVhost(ctx context.Context, name string, settings VhostSettings) (bool, error) {
	return c.put(withTimeout(ctx, vhostTimeout), path("vhosts", name), vhostBody(settings))
}

// GrantCreator gives the client's user what the creator of a vhost gets.
func (c *Client) GrantCreator(ctx context.Context, vhost string) error {
	_, err := c.PutPermission(ctx, Grant{Vhost: vhost, User: c.config.Username}, Permission{Configure: ".*", Write: ".*", Read: ".*"})
	return err
}

// PutTracing changes the tracing of a vhost that has the other settings. A broker can forget one of two changes at the same time, and
// RabbitMQ 3.10 also counts a request that changes nothing.
func (c *Client) PutTracing(ctx context.Context, name string, settings VhostSettings) error {
	if err := c.tracingWrites.acquire(ctx); err != nil {
		return err
	}
	defer c.tracingWrites.release()
	body := vhostBody(settings)
	body["tracing"] = settings.Tracing
	_, err := c.put(ctx, path("vhosts", name), body)
	return err
}

func vhostBody(settings VhostSettings) map[string]any {
	body := map[string]any{"description": settings.Description, "tags": settings.Tags}
	if settings.DefaultQueueType != "" {
		body["default_queue_type"] = settings.DefaultQueueType
		body["defaultqueuetype"] = settings.DefaultQueueType // the name in 3.10
	}
	return body
}

// DeleteVhost deletes a vhost with everything in it.
func (c *Client) DeleteVhost(ctx context.Context, name string) error {
	return c.delete(ctx, "", path("vhosts", name))
}
