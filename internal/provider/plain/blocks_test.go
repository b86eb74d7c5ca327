package plain_test

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// The commonest configuration of the provider cyrilgdn/rabbitmq: the virtual host, or else the broker, decides on the type.
func TestAccEveryRelease_BlockWithoutType(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	defaults := map[string]string{"": "classic"}
	if b.VersionAtLeast("3.11") {
		defaults["classic"], defaults["quorum"] = "classic", "quorum"
	}
	for configured, want := range defaults {
		t.Run("default "+configured, func(t *testing.T) {
			t.Parallel()
			vhost := core("rabbitmq_vhost", map[string]any{"name": b.Vhost + "-" + configured, "force_destroy": true})
			if configured != "" {
				vhost.Config["default_queue_type"] = configured
			}
			vhost.MustApply(t)
			c := core("rabbitmq_queue", map[string]any{
				"name": "q", "vhost": vhost.Config["name"], "settings": []any{map[string]any{"durable": true}},
			})
			c.MustApply(t)
			c.RequireEmptyPlan(t)
			c.RequireEmptyPlan(t)
			var live map[string]any
			b.Call(t, http.MethodGet, "/api/queues/"+url.PathEscape(b.Vhost+"-"+configured)+"/q", nil, &live)
			require.Equal(t, want, live["type"])
			endpoint, writes := counted(t, b)
			imported := core("rabbitmq_queue", c.Config)
			imported.Endpoint = endpoint
			require.NoError(t, imported.Import(t.Context(), url.PathEscape(b.Vhost+"-"+configured)+"/q"))
			imported.MustApply(t)
			imported.RequireEmptyPlan(t)
			imported.Config = map[string]any{"name": "q", "vhost": vhost.Config["name"], "type": want}
			imported.MustApply(t)
			imported.RequireEmptyPlan(t)
			require.Zero(t, writes(), "the import, or the move to attributes, wrote something")
			require.NoError(t, vhost.Destroy(t.Context()))
		})
	}
}

// counted is the endpoint of a management API that counts writes.
func counted(t *testing.T, b *brokertest.Broker) (endpoint string, writes func() int32) {
	t.Helper()
	var count atomic.Int32
	endpoint = b.Before(t, func(r *http.Request) {
		if r.Method != http.MethodGet && !strings.HasSuffix(r.URL.Path, "/get") {
			count.Add(1)
		}
	})
	return endpoint, count.Load
}

// inBlock is a resource with a block, and the same resource with attributes.
type inBlock struct {
	kind     string
	identity map[string]any
	id       string
	block    string
	content  map[string]any
	flat     map[string]any
	// others are further contents by what they change.
	others map[string]map[string]any
}

// config is the configuration with a content of the block.
func (s inBlock) config(content map[string]any) map[string]any {
	config := maps.Clone(s.identity)
	config[s.block] = []any{content}
	return config
}

// but is the content with another value.
func (s inBlock) but(attribute string, value any) map[string]any {
	content := maps.Clone(s.content)
	content[attribute] = value
	return content
}

func blocks(b *brokertest.Broker, user string) map[string]inBlock {
	named := func(name string) (map[string]any, string) {
		return map[string]any{"vhost": b.Vhost, "name": name}, url.PathEscape(b.Vhost) + "/" + name
	}
	all := map[string]inBlock{}
	exchange := inBlock{
		kind: "rabbitmq_exchange", block: "settings",
		content: map[string]any{"type": "topic", "durable": true, "arguments": map[string]any{"alternate-exchange": "amq.fanout"}},
		flat:    map[string]any{"type": "topic", "arguments": map[string]any{"alternate-exchange": "amq.fanout"}},
	}
	exchange.identity, exchange.id = named("e")
	exchange.others = map[string]map[string]any{
		"type": exchange.but("type", "direct"), "durable": exchange.but("durable", false), "auto_delete": exchange.but("auto_delete", true),
		"arguments": exchange.but("arguments", map[string]any{"alternate-exchange": "amq.topic"}), "no arguments": exchange.but("arguments", nil),
	}
	all["exchange"] = exchange
	queue := inBlock{
		kind: "rabbitmq_queue", block: "settings",
		content: map[string]any{"durable": true, "arguments": map[string]any{"x-queue-type": "classic", "x-max-length": "10"}},
		flat:    map[string]any{"type": "classic", "arguments": map[string]any{"x-max-length": 10}},
	}
	queue.identity, queue.id = named("q")
	queue.others = map[string]map[string]any{
		"auto_delete": queue.but("auto_delete", true),
		"arguments":   queue.but("arguments", map[string]any{"x-queue-type": "classic", "x-max-length": "20"}),
		"type":        queue.but("arguments", map[string]any{"x-queue-type": "quorum", "x-max-length": "10"}),
	}
	if !b.VersionAtLeast("4.3") { // which refuses transient queues
		queue.others["durable"] = queue.but("durable", false)
	}
	all["queue"] = queue
	for _, kind := range []string{"policy", "operator_policy"} {
		policy := inBlock{
			kind: "rabbitmq_" + kind, block: "policy",
			content: map[string]any{"pattern": "^a", "apply_to": "queues", "priority": 1, "definition": map[string]any{"max-length": "10", "expires": "1800000"}},
			flat:    map[string]any{"pattern": "^a", "apply_to": "queues", "priority": 1, "definition": map[string]any{"max-length": 10, "expires": 1800000}},
		}
		policy.identity, policy.id = named("p")
		policy.others = map[string]map[string]any{
			"pattern": policy.but("pattern", "^b"), "priority": policy.but("priority", 2), "no priority": policy.but("priority", nil),
			"definition": policy.but("definition", map[string]any{"max-length": "20"}),
		}
		if b.VersionAtLeast("3.12") {
			policy.others["apply_to"] = policy.but("apply_to", "quorum_queues")
		}
		all[kind] = policy
	}
	permissions := inBlock{
		kind: "rabbitmq_permissions", block: "permissions", id: url.PathEscape(b.Vhost) + "/" + user,
		identity: map[string]any{"vhost": b.Vhost, "user": user},
		content:  map[string]any{"configure": "^$", "write": "^a", "read": ".*"},
		flat:     map[string]any{"configure": "^$", "write": "^a", "read": ".*"},
	}
	permissions.others = map[string]map[string]any{
		"configure": permissions.but("configure", "^b"), "write": permissions.but("write", ""), "read": permissions.but("read", "^c"),
	}
	all["permissions"] = permissions
	return all
}

func TestAcc_Blocks(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user := b.Vhost + "-user"
	account(t, b, user, "")
	for what, s := range blocks(b, user) {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s.check(t, b)
		})
	}
}

func (s inBlock) check(t *testing.T, b *brokertest.Broker) {
	t.Helper()
	counts := func() { // a queue is re-created once its counts say that it is empty
		if s.kind == "rabbitmq_queue" {
			acctest.AwaitCount(t, b, "q", 0)
		}
	}
	c := core(s.kind, s.config(s.content))
	c.MustApply(t)
	c.RequireEmptyPlan(t)
	for what, content := range s.others {
		counts()
		byHand := core(s.kind, s.config(content))
		require.NoError(t, byHand.Import(t.Context(), s.id))
		byHand.Settled(t)
		counts()
		plan, err := c.Plan(t.Context())
		if err != nil || plan.Empty() {
			t.Errorf("%v: the plan does not show another %s", err, what)
		}
		c.Settled(t)
		for _, changed := range []map[string]any{content, s.content} {
			counts()
			c.Config = s.config(changed)
			c.Settled(t)
			imported := core(s.kind, c.Config)
			require.NoError(t, imported.Import(t.Context(), s.id))
			endpoint, writes := counted(t, b)
			imported.Endpoint = endpoint
			imported.MustApply(t)
			imported.RequireEmptyPlan(t)
			require.Zero(t, writes(), "the import wrote something")
		}
	}
	endpoint, writes := counted(t, b)
	c.Endpoint = endpoint
	flat := maps.Clone(s.identity)
	maps.Copy(flat, s.flat)
	for _, config := range []map[string]any{flat, s.config(s.content)} {
		c.Config = config
		c.MustApply(t)
		c.RequireEmptyPlan(t)
	}
	require.Zero(t, writes(), "another form of the same wrote something")
	require.NoError(t, c.Destroy(t.Context()))
}

// A block has no attribute internal, and an exchange that somebody made internal shows.
func TestAcc_InternalExchangeShowsInABlock(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := core("rabbitmq_exchange", map[string]any{
		"name": "e", "vhost": b.Vhost, "settings": []any{map[string]any{"type": "topic", "durable": true}},
	})
	c.MustApply(t)
	b.Call(t, http.MethodDelete, b.Path("exchanges", "e"), nil, nil)
	b.Call(t, http.MethodPut, b.Path("exchanges", "e"), map[string]any{"type": "topic", "durable": true, "internal": true}, nil)
	plan, err := c.Plan(t.Context())
	require.NoError(t, err)
	require.False(t, plan.Empty())
	c.MustApply(t)
	c.RequireEmptyPlan(t)
	var live map[string]any
	b.Call(t, http.MethodGet, b.Path("exchanges", "e"), nil, &live)
	require.Equal(t, false, live["internal"])
}

// numbers are arguments of a quorum queue that RabbitMQ takes as integers only.
func numbers(b *brokertest.Broker) []string {
	keys := []string{"max-length", "max-length-bytes", "message-ttl", "expires", "delivery-limit"}
	if !b.VersionAtLeast("3.11") {
		keys = slices.DeleteFunc(keys, func(key string) bool { return key == "message-ttl" }) // not in policies of quorum queues either
	}
	return keys
}

// each has the same value for each key.
func each(keys []string, prefix string, value any) map[string]any {
	all := map[string]any{}
	for _, key := range keys {
		all[prefix+key] = value
	}
	return all
}

func TestAcc_NumbersInQueueArguments(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	keys := numbers(b)
	text, number := each(keys, "x-", "1800000"), each(keys, "x-", 1800000)
	quorum := func(arguments map[string]any) map[string]any {
		arguments = maps.Clone(arguments)
		arguments["x-queue-type"] = "quorum"
		return arguments
	}
	asJSON := func(value string) string {
		parts := []string{`"x-queue-type": "quorum"`}
		for _, key := range keys {
			parts = append(parts, `"x-`+key+`": `+value)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	forms := map[string]map[string]any{
		"numbers":       {"arguments": number},
		"texts":         {"arguments": text},
		"block":         {"settings": []any{map[string]any{"durable": true, "arguments": quorum(text)}}},
		"JSON, numbers": {"settings": []any{map[string]any{"durable": true, "arguments_json": asJSON("1800000")}}},
		"JSON, decimal": {"settings": []any{map[string]any{"durable": true, "arguments_json": asJSON("1800000.0")}}},
		"JSON, texts":   {"settings": []any{map[string]any{"durable": true, "arguments_json": asJSON(`"1800000"`)}}},
	}
	for name, config := range forms {
		config["name"], config["vhost"] = name, b.Vhost
		c := core("rabbitmq_queue", config)
		c.MustApply(t)
		c.RequireEmptyPlan(t)
		c.RequireEmptyPlan(t)
		var live struct {
			Arguments map[string]any `json:"arguments"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", name), nil, &live)
		want := quorum(each(keys, "x-", float64(1800000)))
		require.Equal(t, want, live.Arguments, name)
		endpoint, writes := counted(t, b)
		c.Endpoint = endpoint
		for other, form := range forms {
			c.Config = maps.Clone(form)
			c.Config["name"], c.Config["vhost"] = name, b.Vhost
			c.MustApply(t)
			c.RequireEmptyPlan(t)
			require.Zero(t, writes(), "from %s to %s", name, other)
		}
	}
}

func TestAcc_NumbersInDefinitions(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	keys := numbers(b)
	for _, kind := range []string{"policy", "operator_policy"} {
		forms := map[string]map[string]any{
			"numbers": {"pattern": "^a", "definition": each(keys, "", 10)},
			"texts":   {"pattern": "^a", "definition": each(keys, "", "10")},
			"block": {"policy": []any{map[string]any{
				"pattern": "^a", "apply_to": "queues", "definition": each(keys, "", "10"),
			}}},
		}
		for name, config := range forms {
			config["name"], config["vhost"] = name, b.Vhost
			if name != "block" {
				config["apply_to"] = "queues"
			}
			c := core("rabbitmq_"+kind, config)
			c.MustApply(t)
			c.RequireEmptyPlan(t)
			var live struct {
				Definition map[string]any `json:"definition"`
			}
			path := map[string]string{"policy": "policies", "operator_policy": "operator-policies"}[kind]
			b.Call(t, http.MethodGet, b.Path(path, name), nil, &live)
			require.Equal(t, each(keys, "", float64(10)), live.Definition, name)
			endpoint, writes := counted(t, b)
			c.Endpoint = endpoint
			for _, form := range forms {
				c.Config = maps.Clone(form)
				c.Config["name"], c.Config["vhost"] = name, b.Vhost
				if form["policy"] == nil {
					c.Config["apply_to"] = "queues"
				}
				c.MustApply(t)
				c.RequireEmptyPlan(t)
			}
			require.Zero(t, writes())
		}
	}
}

// Texts that look like numbers stay texts wherever RabbitMQ takes any text.
func TestAcc_TextsStay(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	queue := core("rabbitmq_queue", map[string]any{
		"name": "q", "vhost": b.Vhost, "arguments": map[string]any{"x-dead-letter-exchange": "10", "x-dead-letter-routing-key": "20"},
	})
	queue.MustApply(t)
	queue.RequireEmptyPlan(t)
	binding := core("rabbitmq_binding", map[string]any{
		"vhost": b.Vhost, "source": "amq.headers", "destination": "q",
		"arguments": map[string]any{"x-match": "all", "expires": "10", "max-length": 20, "single-active-consumer": "true"},
	})
	binding.MustApply(t)
	binding.RequireEmptyPlan(t)
	var bindings []struct {
		Arguments map[string]any `json:"arguments"`
	}
	b.Call(t, http.MethodGet, b.Path("bindings", "e", "amq.headers", "q", "q"), nil, &bindings)
	require.Len(t, bindings, 1)
	require.Equal(t, map[string]any{"x-match": "all", "expires": "10", "max-length": 20.0, "single-active-consumer": "true"}, bindings[0].Arguments)
}

const asTerraformHasIt = `
resource "rabbitmq_exchange" "block" {
  name  = "e"
  vhost = "VHOST"
  settings {
    type    = "topic"
    durable = true
  }
}
resource "rabbitmq_queue" "any" {
  name      = "any"
  vhost     = "VHOST"
  arguments = tomap({ x-max-length = 10, x-overflow = "reject-publish" })
}
resource "rabbitmq_queue" "block" {
  for_each = toset(["block"])
  name     = each.key
  vhost    = "VHOST"
  dynamic "settings" {
    for_each = terraform_data.one.output
    content {
      durable   = settings.value
      arguments = { x-queue-type = "classic", x-max-length = 10 }
    }
  }
}
resource "rabbitmq_queue" "unknown_arguments" {
  name  = "unknown"
  vhost = "VHOST"
  settings {
    durable   = true
    arguments = { for one in terraform_data.one.output : "x-queue-type" => "classic" if one }
  }
}
resource "rabbitmq_queue" "untyped" {
  name  = "untyped"
  vhost = "VHOST"
  UNTYPED
}
resource "rabbitmq_exchange" "unknown" {
  name  = "unknown"
  vhost = "VHOST"
  dynamic "settings" {
    for_each = terraform_data.one.output
    content {
      type        = "topic"
      auto_delete = settings.value
    }
  }
}
resource "terraform_data" "one" { input = [true] }
resource "rabbitmq_policy" "any" {
  name       = "any"
  vhost      = "VHOST"
  pattern    = "^any"
  apply_to   = "queues"
  definition = tomap({ max-length = 10, overflow = "reject-publish" })
}
resource "rabbitmq_policy" "block" {
  name  = "block"
  vhost = "VHOST"
  dynamic "policy" {
    for_each = terraform_data.one.output
    content {
      pattern    = "^block"
      apply_to   = "queues"
      definition = { max-length = 10 }
    }
  }
}
resource "rabbitmq_permissions" "block" {
  user  = "USER"
  vhost = "VHOST"
  dynamic "permissions" {
    for_each = terraform_data.one.output
    content {
      configure = "^$"
      write     = "^$"
      read      = ".*"
    }
  }
}
output "settings" { value = rabbitmq_queue.block["block"].settings[0].arguments["x-max-length"] }
`

// A test without Terraform has no map(any), and no dynamic block that is unknown at first.
func TestAcc_BlocksInTerraform(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	user := b.Vhost + "-user"
	account(t, b, user, "")
	tf := acctest.NewCLI(t, acctest.Quick())
	write := func(untyped string) {
		config := strings.NewReplacer("VHOST", b.Vhost, "USER", user, "UNTYPED", untyped).Replace(asTerraformHasIt)
		tf.Write(t, "main.tf", terraformtest.Required+config)
	}
	write("settings { durable = true }")
	tf.Run(t, "apply", "-auto-approve", "-no-color")
	for range 2 {
		printed, code := tf.Exit(t, "plan", "-detailed-exitcode", "-no-color")
		require.Zero(t, code, printed)
	}
	for _, name := range []string{"any", "block"} {
		var queue struct {
			Arguments map[string]any `json:"arguments"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", name), nil, &queue)
		require.InEpsilon(t, 10.0, queue.Arguments["x-max-length"], 0, name)
		var policy struct {
			Definition map[string]any `json:"definition"`
		}
		b.Call(t, http.MethodGet, b.Path("policies", name), nil, &policy)
		require.InEpsilon(t, 10.0, policy.Definition["max-length"], 0, name)
	}
	const warning = "Queue will be re-created"
	write(`type = "quorum"`)
	require.Contains(t, tf.Run(t, "plan", "-no-color"), warning)
	write(`type = "classic"`) // as it is
	require.NotContains(t, tf.Run(t, "plan", "-no-color"), warning)
	tf.Run(t, "destroy", "-auto-approve", "-no-color")
}

// After an import, the state has numbers where the configuration can have texts. In a map(any) with one text, all values are texts.
func TestAcc_ImportOfNumbersThatAreConfiguredAsTexts(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	tf := acctest.NewCLI(t, acctest.Quick())
	tf.Write(t, "main.tf", terraformtest.Required+strings.ReplaceAll(`
resource "rabbitmq_queue" "q" {
  name      = "q"
  vhost     = "VHOST"
  arguments = { x-max-length = "10", x-single-active-consumer = "true" }
}
resource "rabbitmq_policy" "p" {
  name       = "p"
  vhost      = "VHOST"
  pattern    = "^a"
  apply_to   = "queues"
  definition = tomap({ max-length = "10", overflow = "reject-publish" })
}
resource "rabbitmq_operator_policy" "p" {
  name       = "p"
  vhost      = "VHOST"
  pattern    = "^a"
  definition = { max-length = 10, expires = "1800000" }
}
`, "VHOST", b.Vhost))
	b.DeclareQueue(t, "q", "quorum", map[string]any{"x-max-length": 10, "x-single-active-consumer": true})
	for kind, definition := range map[string]map[string]any{
		"policies":          {"max-length": 10, "overflow": "reject-publish"},
		"operator-policies": {"max-length": 10, "expires": 1800000},
	} {
		b.Call(t, http.MethodPut, b.Path(kind, "p"), map[string]any{"pattern": "^a", "apply-to": "queues", "definition": definition}, nil)
	}
	for address, name := range map[string]string{"rabbitmq_queue.q": "q", "rabbitmq_policy.p": "p", "rabbitmq_operator_policy.p": "p"} {
		tf.Run(t, "import", address, url.PathEscape(b.Vhost)+"/"+name)
	}
	printed, code := tf.Exit(t, "plan", "-detailed-exitcode", "-no-color")
	require.Zero(t, code, printed)
	tf.Run(t, "destroy", "-auto-approve", "-no-color")
}
