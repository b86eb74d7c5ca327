package broker

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
)

// Where the API has limits.
const (
	vhostLimits = "vhost-limits"
	userLimits  = "user-limits"
)

// limits are the limits of a vhost or a user. If all have been removed, brokers send an empty list.
type limits map[string]int64

// UnmarshalJSON reads the limits.
func (l *limits) UnmarshalJSON(text []byte) error {
	if string(text) == "[]" {
		return nil
	}
	return json.Unmarshal(text, (*map[string]int64)(l))
}

// limits lists the limits of the vhosts or users that have some, by name.
func (c *Client) limits(ctx context.Context, of string) (map[string]map[string]int64, error) {
	var listed []struct {
		Vhost string `json:"vhost"`
		User  string `json:"user"`
		Value limits `json:"value"`
	}
	err := c.get(ctx, path(of), &listed)
	all := map[string]map[string]int64{}
	for _, each := range listed {
		all[each.Vhost+each.User] = each.Value
	}
	return all, err
}

// UserLimits lists the limits of users that have some. The keys are max-connections and max-channels.
func (c *Client) UserLimits(ctx context.Context) (map[string]map[string]int64, error) {
	return c.limits(ctx, userLimits)
}

// PutVhostLimits changes the limits of a vhost that differ.
func (c *Client) PutVhostLimits(ctx context.Context, vhost string, before, wanted map[string]int64) error {
	return c.putLimits(ctx, vhostLimits, vhost, before, wanted)
}

// PutUserLimits changes the limits of a user that differ.
func (c *Client) PutUserLimits(ctx context.Context, user string, before, wanted map[string]int64) error {
	return c.putLimits(ctx, userLimits, user, before, wanted)
}

func (c *Client) putLimits(ctx context.Context, of, name string, before, wanted map[string]int64) error {
	var failed []error
	for limit, value := range wanted {
		if was, isSet := before[limit]; !isSet || was != value {
			_, err := c.do(ctx, http.MethodPut, path(of, name, limit), map[string]any{"value": value}, nil)
			failed = append(failed, err)
		}
	}
	for limit := range before {
		if _, stays := wanted[limit]; !stays {
			failed = append(failed, c.delete(ctx, "", path(of, name, limit)))
		}
	}
	return errors.Join(failed...)
}
