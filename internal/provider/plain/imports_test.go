package plain_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// route is a binding as a user knows it.
type route struct {
	key       string
	arguments map[string]any
}

// boundTo binds a new queue, and returns the broker's properties keys.
func boundTo(t *testing.T, b *brokertest.Broker, queue string, routes ...route) []string {
	t.Helper()
	b.DeclareQueue(t, queue, "classic", nil)
	keys := make([]string, len(routes))
	for i, r := range routes {
		arguments := map[string]any{}
		maps.Copy(arguments, r.arguments)
		b.Call(t, http.MethodPost, b.Path("bindings", "e", "amq.topic", "q", queue), map[string]any{"routing_key": r.key, "arguments": arguments}, nil)
		var live []struct {
			Key        string         `json:"routing_key"`
			Properties string         `json:"properties_key"`
			Arguments  map[string]any `json:"arguments"`
		}
		b.Call(t, http.MethodGet, b.Path("bindings", "e", "amq.topic", "q", queue), nil, &live)
		for _, l := range live {
			if l.Key == r.key && fmt.Sprint(l.Arguments) == fmt.Sprint(arguments) {
				keys[i] = l.Properties
			}
		}
		require.NotEmpty(t, keys[i])
	}
	return keys
}

// imported imports a binding, and fails unless the next plan is empty.
func imported(t *testing.T, b *brokertest.Broker, queue string, r route, end string) error {
	t.Helper()
	c := core("rabbitmq_binding", map[string]any{"vhost": b.Vhost, "source": "amq.topic", "destination": queue, "routing_key": r.key})
	if r.arguments != nil {
		c.Config["arguments"] = r.arguments
	}
	err := c.Import(t.Context(), fmt.Sprintf("%s/amq.topic/queue/%s/%s", url.PathEscape(b.Vhost), queue, end))
	if err == nil {
		c.RequireEmptyPlan(t)
	}
	return err
}

// A binding is imported by its routing key, encoded or not, by its id, and by its identity.
func TestAccEveryRelease_ImportsOfBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	arguments := map[string]any{"x-match": "all", "type": "order"}
	routes := []route{
		{key: ""},
		{key: "", arguments: arguments},
		{key: "order.created"},
		{key: "order.*.#"},
		{key: "a b"},
		{key: "a+b"},
		{key: "/"},
		{key: "/a//b/"},
		{key: "~"},
		{key: "a~b"},
		{key: "100%"},
		{key: "%2F"},
		{key: "a%2Fb%25"},
		{key: "%zz"},
		{key: "é €"},
		{key: `"'\`},
		{key: "a/b #", arguments: arguments},
	}
	t.Run("id", func(t *testing.T) {
		for i, r := range routes {
			t.Run(fmt.Sprintf("%d %s", i, strings.ReplaceAll(r.key, "/", "_")), func(t *testing.T) {
				t.Parallel()
				queue := fmt.Sprint("q", i)
				key := boundTo(t, b, queue, r)[0]
				boundTo(t, b, queue+".other", r, route{key: "other"})
				for _, end := range []string{r.key, url.PathEscape(r.key), key, url.PathEscape(key)} {
					require.NoError(t, imported(t, b, queue, r, end), end)
					require.NoError(t, imported(t, b, queue+".other", r, end), end)
				}
			})
		}
	})
	t.Run("identity", func(t *testing.T) {
		listed, err := (&acctest.Process{}).Query(t.Context(), "rabbitmq_binding", map[string]any{"vhost": b.Vhost})
		require.NoError(t, err)
		require.Len(t, listed, 3*len(routes))
		for _, l := range listed {
			l.Resource.RequireEmptyPlan(t)
		}
	})
}

// A routing key that also is the properties key of another binding means both, and the error has an id for each.
func TestAccEveryRelease_ImportsOfAmbiguousBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	all := map[string]any{"x-match": "all"}
	for name, c := range map[string]struct {
		end    string
		routes []route
	}{
		"slash":           {"a%2Fb", []route{{key: "a/b"}, {key: "a%2Fb"}}},
		"encoded twice":   {"a%252Fb", []route{{key: "a/b"}, {key: "a%252Fb"}, {key: "a%2Fb"}}},
		"space":           {"a+b", []route{{key: "a b"}, {key: "a+b"}}},
		"no key":          {"~", []route{{key: ""}, {key: "~"}, {key: "%7E"}}},
		"other arguments": {"a.#", []route{{key: "a.#"}, {key: "a.#", arguments: all}, {key: "a.#", arguments: map[string]any{"x-match": "any"}}}},
		"no key, others":  {"", []route{{key: ""}, {key: "", arguments: all}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			queue := strings.ReplaceAll(name, " ", "-")
			keys := boundTo(t, b, queue, c.routes...)
			err := imported(t, b, queue, route{}, c.end)
			require.ErrorContains(t, err, "More than one binding")
			ids := regexp.MustCompile(`'([^']*)' is amq\.topic -> `+queue).FindAllStringSubmatch(err.Error(), -1)
			require.NotEmpty(t, ids)
			reached := map[string]bool{}
			for _, id := range ids {
				found := core("rabbitmq_binding", nil)
				require.NoError(t, found.Import(t.Context(), id[1]))
				for i, r := range c.routes {
					found.Config = map[string]any{"vhost": b.Vhost, "source": "amq.topic", "destination": queue, "routing_key": r.key}
					if r.arguments != nil {
						found.Config["arguments"] = r.arguments
					}
					plan, err := found.Plan(t.Context())
					require.NoError(t, err)
					if plan.Empty() {
						reached[keys[i]] = true
					}
				}
			}
			require.Len(t, reached, len(ids), err)
			for i, r := range c.routes {
				if r.key == c.end {
					require.True(t, reached[keys[i]], "the binding with that key is not in %s", err)
				}
			}
		})
	}
	t.Run("arguments", func(t *testing.T) {
		t.Parallel()
		routes := []route{{key: "a"}, {key: "a", arguments: all}}
		keys := boundTo(t, b, "both", routes...)
		require.NoError(t, imported(t, b, "both", routes[0], "a"), "the id of the binding without arguments")
		require.NoError(t, imported(t, b, "both", routes[1], keys[1]))
	})
}

// An id that means no binding leads to those that there are.
func TestAcc_ImportsOfMissingBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	boundTo(t, b, "q", route{key: "order.created"}, route{key: "a/b c"})
	boundTo(t, b, "none")
	err := imported(t, b, "q", route{}, "order.%23")
	require.ErrorContains(t, err, "Binding does not exist")
	require.ErrorContains(t, err, `No binding from exchange "amq.topic" to queue "q" in vhost "`+b.Vhost+`" has the routing key or the properties key "order.%23".`)
	require.ErrorContains(t, err, "Bindings between the two: 2.\n  - '"+url.PathEscape(b.Vhost)+"/amq.topic/queue/q/")
	require.ErrorContains(t, err, "amq.topic -> q [order.created]")
	err = imported(t, b, "none", route{}, "a")
	require.ErrorContains(t, err, "Bindings between the two: 0.")
}

// An id that no object has leads to the form of an id, with an example.
func TestAcc_WrongImportIDs(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	v := url.PathEscape(b.Vhost)
	encoded := " In an id of several parts, / is %2F and % is %25."
	inVhost := []string{"q@" + v, "", "/", v + "/", v + "/%zz", "%2F"}
	for kind, c := range map[string]struct {
		form   string
		absent []string // a well-formed id
		wrong  []string
	}{
		"vhost":               {"<name>, such as shop." + encoded, []string{"none"}, []string{""}},
		"user":                {"<name>, such as retry." + encoded, []string{"none", "user@" + v}, []string{""}},
		"queue":               {"<vhost>/<name>, such as %2F/orders.created." + encoded, []string{v + "/q", v + ".none/q", "q/" + v}, inVhost},
		"exchange":            {"<vhost>/<name>, such as %2F/orders." + encoded, []string{v + "/e", v + ".none/e"}, inVhost},
		"policy":              {"<vhost>/<name>, such as %2F/size." + encoded, []string{v + "/p", v + ".none/p"}, inVhost},
		"operator_policy":     {"<vhost>/<name>, such as %2F/size." + encoded, []string{v + "/p"}, inVhost},
		"permissions":         {"<vhost>/<user>, such as %2F/shop." + encoded, []string{v + "/nobody", "guest/" + v}, append(inVhost, "guest@"+v)},
		"topic_permissions":   {"<vhost>/<user>, such as %2F/shop." + encoded, []string{v + "/nobody"}, inVhost},
		"shovel":              {"<vhost>/<name>, such as %2F/orders." + encoded, []string{v + "/s", v + ".none/s"}, inVhost},
		"federation_upstream": {"<vhost>/<name>, such as %2F/orders." + encoded, []string{v + "/f"}, inVhost},
		"parameter": {
			"<vhost>/<component>/<name>, such as %2F/federation-upstream-set/both." + encoded,
			[]string{v + "/federation-upstream-set/none"},
			append(inVhost, v+"/both"),
		},
		"retry_pipeline": {"<vhost>/<name>, such as %2F/orders." + encoded, []string{v + "/p", v + ".none/p"}, inVhost},
		"retry_attachment": {
			"<vhost>/<pipeline>/<queue>, such as %2F/orders/invoices." + encoded, []string{v + "/p/q", v + ".none/p/q"}, append(inVhost, v+"/q"),
		},
		"delayed_exchange": {"<vhost>/<name>, such as %2F/events." + encoded, []string{v + "/e", v + ".none/e"}, inVhost},
		"binding": {
			"<vhost>/<source>/<destination_type>/<destination>/<properties_key>, such as %2F/orders/queue/orders.created/order.created." + encoded,
			nil,
			[]string{"", "a", v + "/amq.topic/queue/q", v + "/amq.topic/q/queue/a.%23", v + "//queue/q/a", v + "/%/queue/q/a"},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			of := func(id string) error {
				found := core("rabbitmq_"+kind, nil)
				if err := found.Import(t.Context(), id); err != nil {
					return err
				}
				_, err := found.Plan(t.Context())
				return err
			}
			for _, id := range c.absent {
				err := of(id)
				t.Log(id, err)
				require.Regexp(t, "^(Nothing to import|Cannot import the)", err, id)
				require.ErrorContains(t, err, "An import id has the form "+c.form, id)
			}
			for _, id := range c.wrong {
				if id == "" {
					continue
				}
				err := of(id)
				t.Log(id, err)
				require.ErrorContains(t, err, "An import id has the form "+c.form, id)
			}
		})
	}
}
