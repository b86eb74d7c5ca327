package broker

import (
	"context"
	"net/url"
	"strings"

	rabbithole "github.com/michaelklishin/rabbit-hole/v2"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Components of runtime parameters.
const (
	ShovelComponent             = "shovel"
	FederationUpstreamComponent = "federation-upstream"
)

// ParameterID identifies a runtime parameter.
type ParameterID struct{ Component, Vhost, Name string }

func (id ParameterID) path() string { return path("parameters", id.Component, id.Vhost, id.Name) }

func valueOf(parameter rabbithole.RuntimeParameter) any {
	return topology.DecodedArguments(map[string]any{"": parameter.Value})[""]
}

// Parameters lists the runtime parameters of all components that the user can see, without policies.
func (c *Client) Parameters(ctx context.Context) (map[ParameterID]any, error) {
	var listed []rabbithole.RuntimeParameter
	err := c.get(ctx, path("parameters"), &listed)
	all := map[ParameterID]any{}
	for _, i := range listed {
		all[ParameterID{i.Component, i.Vhost, i.Name}] = valueOf(i)
	}
	return all, err
}

// Parameter reads a runtime parameter.
func (c *Client) Parameter(ctx context.Context, id ParameterID) (value any, exists bool, err error) {
	var info rabbithole.RuntimeParameter
	err = c.get(ctx, id.path(), &info)
	return valueOf(info), err == nil, missing(err)
}

// PutParameter writes a runtime parameter, and reports whether it is new. No error repeats a URI in the value.
func (c *Client) PutParameter(ctx context.Context, id ParameterID, value any) (bool, error) {
	body := map[string]any{"component": id.Component, "vhost": id.Vhost, "name": id.Name, "value": value}
	return c.put(context.WithValue(ctx, secretsKey{}, secretsIn(value)), id.path(), body)
}

// DeleteParameter deletes a runtime parameter. A missing one counts as deleted.
func (c *Client) DeleteParameter(ctx context.Context, id ParameterID) error {
	return c.delete(ctx, id.Vhost, id.path())
}

// secretsIn are the URIs in a value, and the passwords in them.
func secretsIn(value any) []string {
	var secrets []string
	switch value := value.(type) {
	case string:
		_, rest, isURI := strings.Cut(value, "://")
		if !isURI {
			return nil
		}
		secrets = append(secrets, value)
		if end := strings.LastIndex(rest, "@"); end >= 0 {
			_, password, _ := strings.Cut(rest[:end], ":")
			decoded, _ := url.PathUnescape(password)
			secrets = append(secrets, password, decoded)
		}
	case []any:
		for _, element := range value {
			secrets = append(secrets, secretsIn(element)...)
		}
	case map[string]any:
		for _, element := range value {
			secrets = append(secrets, secretsIn(element)...)
		}
	}
	return secrets
}
