package broker

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Another user binds a queue and then writes its policy while a vhost is listed. A listing with the policy must have
// the binding.
func TestNoPolicyIsListedBeforeItsBindings(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "q", "classic", nil)
	direct := newClient(t, b, b.Endpoint)
	written := make(chan struct{})
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if strings.Contains(r.URL.Path, "/policies/") {
			brokertest.Within(written, time.Second) // bindings can be listed later
		}
		api.ServeHTTP(w, r)
		if strings.Contains(r.URL.Path, "/bindings/") {
			if err := direct.Bind(t.Context(), b.Vhost, topology.Binding{Source: "amq.direct", Destination: "q", RoutingKey: "k"}); err != nil {
				t.Error(err)
			}
			if _, err := direct.PutPolicy(t.Context(), b.Vhost, "p", topology.Policy{
				Pattern: "q", ApplyTo: "queues", Definition: topology.Arguments{"max-length": int64(9)},
			}); err != nil {
				t.Error(err)
			}
			close(written)
		}
	}))
	vhost, err := c.List(t.Context(), b.Vhost)
	require.NoError(t, err)
	require.NotContains(t, vhost.Policies, "p", vhost.Bindings)
}

// Behind a proxy that decodes slashes, the list of the vhost "/" has all vhosts. An object with a slash in its name
// seems not to exist. The client must believe neither.
func TestProxyThatDecodesPaths(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"plain", "with/slash"} {
		b := brokertest.NewNamed(t, prefix)
		direct, c := newClient(t, b, b.Endpoint), newClient(t, b, b.Decoding(t))
		policy := topology.Policy{Pattern: "^q$", ApplyTo: "queues", Definition: topology.Arguments{"max-length": 9}}
		_, err := direct.PutPolicy(t.Context(), b.Vhost, "a/b", policy)
		require.NoError(t, err)
		_, err = direct.PutQueue(t.Context(), b.Vhost, "a/b", topology.Queue{Type: topology.Classic})
		require.NoError(t, err)
		_, all := c.List(t.Context(), "/")
		_, queues := c.Queues(t.Context(), "/")
		_, queue := c.Queue(t.Context(), b.Vhost, "a/b")
		_, put := c.PutPolicy(t.Context(), b.Vhost, "a/c", policy)
		for what, err := range map[string]error{
			"list": all, "queues": queues, "queue": queue, "write": put,
			"delete": c.DeletePolicy(t.Context(), b.Vhost, "a/b"),
			"unbind": c.Unbind(t.Context(), b.Vhost, topology.Binding{Destination: "a/b", Source: "amq.direct", PropertiesKey: "~"}),
		} {
			if err == nil || IsNotFound(err) || !strings.Contains(err.Error(), "%2F") || !strings.Contains(err.Error(), "nginx") {
				t.Errorf("%s: %s: got %v", prefix, what, err)
			}
		}
		b.Call(t, http.MethodGet, b.Path("policies", "a/b"), nil, nil) // it still exists
	}
}

// An answer about another object, such as one from a cache, proves nothing.
func TestAnswersAboutSomethingElse(t *testing.T) {
	t.Parallel()
	b, other := brokertest.New(t), brokertest.New(t)
	other.DeclareQueue(t, "q", topology.Classic, nil)
	b.DeclareQueue(t, "r", topology.Classic, nil)
	for kind, name := range map[string]string{"exchanges": "x", "queues": "q", "policies": "p", "operator-policies": "p"} {
		body := map[string]any{"type": "fanout", "pattern": "^q$", "apply-to": "queues", "definition": map[string]any{"max-length": 9}}
		if kind != "queues" {
			other.Call(t, http.MethodPut, other.Path(kind, name), body, nil)
		}
	}
	for _, kind := range []string{"exchanges", "queues", "bindings", "policies", "operator-policies"} {
		c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if strings.HasPrefix(r.URL.Path, "/api/"+kind+"/") {
				r.URL.Path = strings.Replace(r.URL.Path, b.Vhost, other.Vhost, 1)
			}
			api.ServeHTTP(w, r)
		}))
		_, err := c.List(t.Context(), b.Vhost)
		require.ErrorContains(t, err, other.Vhost, kind)
		binding := topology.Binding{Destination: "q"}
		if err := c.Unbind(t.Context(), b.Vhost, binding); kind == "bindings" && (err == nil || !strings.Contains(err.Error(), other.Vhost)) {
			t.Errorf("unbind: got %v", err)
		}
	}
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		r.URL.Path = b.Path("queues", "r")
		api.ServeHTTP(w, r)
	}))
	_, err := c.Queue(t.Context(), b.Vhost, "s")
	require.ErrorContains(t, err, `queue "r"`)
}

// To look into a queue needs a connection, which limits can refuse. A missing permission is another error.
func TestConnectionsThatLimitsRefuse(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "q")
	c := newClient(t, b, b.Endpoint)
	limit := b.Path("vhost-limits", "max-connections")
	b.Call(t, http.MethodPut, limit, map[string]any{"value": 0}, nil)
	_, err := c.HoldsMessage(t.Context(), b.Vhost, "q")
	var refused *RefusedError
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "the limit max-connections of the vhost is 0") {
		t.Errorf("got %v", err)
	}
	b.Call(t, http.MethodDelete, limit, nil, nil)
	if holds, err := c.HoldsMessage(t.Context(), b.Vhost, "q"); holds || err != nil {
		t.Errorf("got %t, %v", holds, err)
	}
	name, password := b.User(t, "policymaker", ".*", ".*", "^$")
	without, err := New(Config{Endpoint: b.Endpoint, Username: name, Password: password})
	require.NoError(t, err)
	if _, err := without.HoldsMessage(t.Context(), b.Vhost, "q"); err == nil || errors.As(err, &refused) {
		t.Errorf("without the permission: %v", err)
	}
}

// If a binding has a ~ in its key and arguments, the management API fails for the binding, and for every list with it.
func TestBindingThatCannotBeListed(t *testing.T) {
	t.Parallel()
	for name, bad := range map[string]topology.Binding{
		`the queue "other"`:         {Source: "amq.topic", Destination: "other", RoutingKey: "a~b", Arguments: topology.Arguments{"x": int64(1)}},
		`the exchange "amq.fanout"`: {Source: "amq.direct", Destination: "amq.fanout", ToExchange: true, RoutingKey: "a~b", Arguments: topology.Arguments{"x": int64(1)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			c := newClient(t, b, b.Endpoint)
			for _, queue := range []string{"one", "other"} {
				b.DeclareQueue(t, queue, "quorum", nil)
			}
			for _, fine := range []topology.Binding{
				{Source: "amq.topic", Destination: "one", RoutingKey: "a~b"},
				{Source: "amq.topic", Destination: "one", RoutingKey: "~", Arguments: topology.Arguments{"x": int64(1)}},
			} {
				require.NoError(t, c.Bind(t.Context(), b.Vhost, fine))
			}
			_, err := c.List(t.Context(), b.Vhost)
			require.NoError(t, err)
			_ = c.Bind(t.Context(), b.Vhost, bad) // the binding is created, but answered with 500
			want := `from the exchange "` + bad.Source + `" to ` + name
			_, err = c.List(t.Context(), b.Vhost)
			require.ErrorContains(t, err, want)
		})
	}
}

// everyField sets each field of each kind of object in one of them.
func everyField() topology.Topology {
	arguments := topology.Arguments{
		"x-text": "ü", "x-number": int64(7), "x-flag": true, "x-list": []any{"a", int64(1)}, "x-table": map[string]any{"k": "v"},
	}
	return topology.Topology{
		Exchanges: map[string]topology.Exchange{
			"plain":       {Type: "direct"},
			"transient":   {Type: "fanout", Transient: true},
			"auto delete": {Type: "topic", AutoDelete: true},
			"internal":    {Type: "headers", Internal: true},
			"arguments":   {Type: "fanout", Arguments: arguments},
		},
		Queues: map[string]topology.Queue{
			"quorum":      {Type: topology.Quorum},
			"classic":     {Type: topology.Classic},
			"transient":   {Type: topology.Classic, Transient: true},
			"auto delete": {Type: topology.Classic, AutoDelete: true},
			"arguments":   {Type: topology.Classic, Arguments: topology.Arguments{"x-message-ttl": int64(1000), "x-dead-letter-exchange": "plain"}},
		},
		Bindings: []topology.Binding{
			{Source: "plain", Destination: "quorum", RoutingKey: "a/b %"},
			{Source: "plain", Destination: "internal", ToExchange: true, RoutingKey: "k"},
			{Source: "internal", Destination: "classic", Arguments: arguments},
		},
		Policies: map[string]topology.Policy{
			"all/of it": {Pattern: "^q", ApplyTo: "queues", Priority: 3, Definition: topology.Arguments{"max-length": int64(9), "overflow": "reject-publish"}},
		},
	}
}

// Written objects are read back unchanged. Otherwise a plan would never be empty.
func TestEveryFieldIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	wanted := everyField()
	put(t, c, b.Vhost, wanted)
	before, err := c.List(t.Context(), b.Vhost)
	require.NoError(t, err)
	live := before.Topology
	for name := range live.Exchanges {
		if _, ours := wanted.Exchanges[name]; !ours {
			delete(live.Exchanges, name) // the broker's own
		}
	}
	var bindings []topology.Binding
	for _, binding := range live.Bindings {
		if binding.Source != "" {
			bindings = append(bindings, binding)
		}
	}
	live.Bindings = bindings
	changes := topology.Diff(wanted, live)
	require.Truef(t, changes.Empty(), "read is something else than was written: %+v", changes)
	// To write them again creates no object, and no write is refused.
	put(t, c, b.Vhost, live)
}

func put(t *testing.T, c *Client, vhost string, objects topology.Topology) {
	t.Helper()
	for name, exchange := range objects.Exchanges {
		_, err := c.PutExchange(t.Context(), vhost, name, exchange)
		require.NoError(t, err, name)
	}
	for name, queue := range objects.Queues {
		_, err := c.PutQueue(t.Context(), vhost, name, queue)
		require.NoError(t, err, name)
	}
	for _, binding := range objects.Bindings {
		require.NoError(t, c.Bind(t.Context(), vhost, binding), binding)
	}
	for name, policy := range objects.Policies {
		_, err := c.PutPolicy(t.Context(), vhost, name, policy)
		require.NoError(t, err, name)
	}
}

// The management API would declare an exclusive queue as another kind of queue, and report success.
func TestExclusiveQueueIsNotDeclaredAsAnother(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	_, err := c.PutQueue(t.Context(), b.Vhost, "q", topology.Queue{Type: topology.Classic, Exclusive: true})
	if !errors.Is(err, errExclusive) || IsUnanswered(err) {
		t.Errorf("got %v", err)
	}
	if status, _ := b.Request(t, http.MethodGet, b.Path("queues", "q"), nil); status != http.StatusNotFound {
		t.Errorf("the queue was declared: %d", status)
	}
}

// If the matcher decides about a pattern and a name, the broker decides the same.
func TestPatternsMatchAsOnTheBroker(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	for _, name := range []string{"orders.failed", "orders", "ORDERS", "a]", "a", "1", "-", "o_1", "a b", "größe", "voilà", "١٢", "oo"} {
		if status, response := b.Request(t, http.MethodPut, b.Path("queues", name), map[string]any{"durable": true}); status != http.StatusCreated {
			t.Fatalf("queue %s: %d %s", name, status, response)
		}
	}
	for _, pattern := range []string{
		`^[[:lower:].]+$`, `^[[:upper:]]+$`, `^[[:alnum:]_.-]+$`, `^[^[:punct:]]+$`, `[[:^alpha:]]`, `^[[:^digit:][:space:]]+$`, `[[:xdigit:]]`,
		`^[[:ascii:]]+$`, `^[[:word:]]+$`, `^[a-f-[:digit:]]$`, `^[+-[:digit:]]$`, `[[:<:]]orders`, `[[:alpha:]`, `[[:none:]]`, `[[.a.]]`,
		`^[a-z-[a]]$`, `^[a-z.-[x]]+$`, `^[]a]+$`, `^[^]a]+$`, `^[[]`, `^[*-\-]$`, `^[\D\w]$`, `^[\W\S]+$`, `^[\w-]+$`, `^[]`,
		`^\w+$`, `\W`, `^\d+$`, `^\D+$`, `^\s*$`, `^\S+$`, `\borders\b`, `e\b`, `^.{5}$`, `^.{7}$`, `^[^.]{7}$`, `[ö]`, `^größe$`, `^voil\xc3\xa0$`,
		`(?i)^orders`, `(?i)^GRÖSSE$`, `^(?!amq\.).*`, `^(?:orders|a)(?<!d)$`, `^(?>o|oo)o$`, `^(?s:.)+$`, `(?-i)a`, `(?x) o`, `(?#a)a`, `(?|a|b)`, `(?(?=a)a|1)`,
		`\u0061`, `^\p{L}+$`, `^(o)\1$`, `^(?<n>o)\k<n>$`, `^(?P<n>o)`, `^o{,3}$`, `^o{1,3}$`, `^o++$`, `\Qorders.\E`, `^\N+$`, `a\h`, `\v`, `o\_1`, `(`,
	} {
		policy := topology.Policy{Pattern: pattern, ApplyTo: "queues", Definition: topology.Arguments{"max-length": 9}}
		matcher := topology.NewMatcher(map[string]topology.Policy{"test": policy})
		for name, matched := range matchedOnBroker(t, b, policy) {
			found, doubtful := matcher.Queue(name, topology.Classic, topology.Version{})
			if said := len(found) > 0; len(doubtful) == 0 && said != matched {
				t.Errorf("%s matches %s: %t, but %t is said", pattern, name, matched, said)
			}
		}
	}
}

// matchedOnBroker returns the queues that a policy applies to. If the broker refuses the policy, it returns no queues.
func matchedOnBroker(t *testing.T, b *brokertest.Broker, policy topology.Policy) map[string]bool {
	t.Helper()
	status, response := b.Request(t, http.MethodPut, b.Path("policies", "test"), map[string]any{"pattern": policy.Pattern, "apply-to": policy.ApplyTo, "definition": policy.Definition})
	if status == http.StatusBadRequest {
		t.Logf("%s is refused: %s", policy.Pattern, response)
		return nil
	}
	var queues []struct {
		Name   string `json:"name"`
		Policy string `json:"policy"`
	}
	if _, response = b.Request(t, http.MethodGet, b.Path("queues")+"?disable_stats=true", nil); json.Unmarshal(response, &queues) != nil {
		t.Fatalf("queues: %s", response)
	}
	found := map[string]bool{}
	for _, queue := range queues {
		found[queue.Name] = queue.Policy == "test"
	}
	// The next test must not find objects of this one.
	b.Request(t, http.MethodDelete, b.Path("policies", "test"), nil)
	return found
}
