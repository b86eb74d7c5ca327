package broker

import (
	"context"
	"encoding/json"
	"errors"
)

// Where the API has the limits of vhosts and of users. The keys are max-connections, and max-queues or max-channels.
const (
	VhostLimits = "vhost-limits"
	UserLimits  = "user-limits"
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

// Limits lists the limits of the vhosts or users that have some, by name. Names select one.
func (c *Client) Limits(ctx context.Context, of ...string) (map[string]map[string]int64, error) {
	var listed []struct {
		Vhost string `json:"vhost"`
		User  string `json:"user"`
		Value limits `json:"value"`
	}
	err := c.get(ctx, path(of...), &listed)
	all := map[string]map[string]int64{}
	for _, each := range listed {
		all[each.Vhost+each.User] = each.Value
	}
	return all, err
}

// PutLimits changes the limits of a vhost or user that differ.
func (c *Client) PutLimits(ctx context.Context, of, name string, before, wanted map[string]int64) error {
	var failed []error
	for limit, value := range wanted {
		if was, isSet := before[limit]; !isSet || was != value {
			_, err := c.put(ctx, path(of, name, limit), map[string]any{"value": value})
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
