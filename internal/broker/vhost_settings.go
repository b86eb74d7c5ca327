package broker

import (
	"context"
	"net/http"
)

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
	limits, err := c.limits(ctx, vhostLimits)
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

// PutVhost creates or changes a vhost, without its limits, and reports whether it is new.
func (c *Client) PutVhost(ctx context.Context, name string, settings VhostSettings) (bool, error) {
	body := map[string]any{"description": settings.Description, "tags": settings.Tags, "tracing": settings.Tracing}
	if settings.DefaultQueueType != "" {
		body["default_queue_type"] = settings.DefaultQueueType
		body["defaultqueuetype"] = settings.DefaultQueueType // the name in 3.10
	}
	status, err := c.do(ctx, http.MethodPut, path("vhosts", name), body, nil)
	return status == http.StatusCreated, err
}

// DeleteVhost deletes a vhost with everything in it.
func (c *Client) DeleteVhost(ctx context.Context, name string) error {
	return c.delete(ctx, "", path("vhosts", name))
}
