package plain_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	notes "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/stored"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// run returns Terraform with a configuration that a user can apply.
func run(t *testing.T, endpoint, user, password, config string) *terraformtest.CLI {
	t.Helper()
	acctest.Require(t)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t),
		"RABBITMQ_ENDPOINT="+endpoint, "RABBITMQ_USERNAME="+user, "RABBITMQ_PASSWORD="+password)
	tf.Write(t, "main.tf", terraformtest.Required+config)
	return tf
}

// boundQueue applies a queue with a binding from amq.topic.
func boundQueue(t *testing.T, b *brokertest.Broker) *terraformtest.CLI {
	t.Helper()
	tf := run(t, b.Endpoint, b.Username, b.Password, strings.ReplaceAll(`
resource "rabbitmq_queue" "q" {
  vhost = "VHOST"
  name  = "q"
}
resource "rabbitmq_binding" "b" {
  vhost       = "VHOST"
  source      = "amq.topic"
  destination = rabbitmq_queue.q.name
  routing_key = "key"
}`, "VHOST", b.Vhost))
	tf.Run(t, "apply", "-auto-approve")
	return tf
}

// A destroy fails in the plan, before a binding goes, if messages stay in a queue. If the apply refuses, it says which bindings went.
func TestAcc_DestroyOfAQueueWithMessages(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	tf := boundQueue(t, b)
	publish := func() { b.Publish(t, "amq.topic", "key", amqp.Publishing{DeliveryMode: amqp.Persistent}) }
	publish()
	acctest.AwaitCount(t, b, "q", 1)
	_, err := tf.Try(t.Context(), "destroy", "-auto-approve", "-no-color")
	require.ErrorContains(t, err, "Error: Queue has messages")
	b.Consume(t, "q", 0)
	awaitConsumer(t, b, "q")
	_, err = tf.Try(t.Context(), "destroy", "-auto-approve", "-no-color")
	require.ErrorContains(t, err, "This apply has already deleted bindings to it:")
	tf.Run(t, "apply", "-auto-approve")
	publish()
	acctest.AwaitCount(t, b, "q", 2)
}

func awaitConsumer(t *testing.T, b *brokertest.Broker, queue string) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var q struct {
			Consumers int `json:"consumers"`
		}
		if b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &q); q.Consumers == 0 {
			return errors.New("the broker does not count the consumer yet")
		}
		return nil
	})
}

// Within one destroy, what stands in the way of a deletion goes first, and Terraform's own permissions go last.
func TestAcc_DestroyInAnyOrder(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user, password := b.User(t, "administrator", ".*", ".*", ".*")
	endpoint := b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodDelete && (strings.Contains(r.URL.Path, "/bindings/") || strings.Contains(r.URL.Path, "/queues/")) {
			time.Sleep(time.Second) // the other deletions begin meanwhile
		}
		api.ServeHTTP(w, r)
	})
	tf := run(t, endpoint, user, password, strings.NewReplacer("VHOST", b.Vhost+".own", "USER", user).Replace(`
resource "rabbitmq_vhost" "v" { name = "VHOST" }
resource "rabbitmq_permissions" "own" {
  vhost     = rabbitmq_vhost.v.name
  user      = "USER"
  configure = ".*"
  write     = ".*"
  read      = ".*"
}
resource "rabbitmq_exchange" "dead" {
  vhost = rabbitmq_vhost.v.name
  name  = "dead"
  type  = "fanout"
}
resource "rabbitmq_queue" "q" {
  vhost     = rabbitmq_vhost.v.name
  name      = "q"
  arguments = { "x-dead-letter-exchange" = "dead" }
}
resource "rabbitmq_binding" "b" {
  vhost       = rabbitmq_vhost.v.name
  source      = "dead"
  destination = "q"
  depends_on  = [rabbitmq_exchange.dead]
}
resource "rabbitmq_retry_pipeline" "orders" {
  vhost       = rabbitmq_vhost.v.name
  name        = "orders"
  delays      = ["5s"]
  work_queues = { work = { declare = true } }
}
resource "rabbitmq_binding" "work" {
  vhost       = rabbitmq_vhost.v.name
  source      = "dead"
  destination = "work"
  depends_on  = [rabbitmq_exchange.dead]
}
resource "rabbitmq_policy" "p" {
  vhost      = rabbitmq_vhost.v.name
  name       = "p"
  pattern    = "x"
  definition = { max-length = 1 }
}`))
	brokertest.Eventually(t, func() error { // the binding can come before the queue
		_, err := tf.Try(t.Context(), "apply", "-auto-approve")
		return err
	})
	tf.Run(t, "destroy", "-auto-approve")
}

// A rabbitmq_user that narrows the permissions of Terraform's own user waits for the deletion of a queue, which needs them.
func TestAcc_OwnPermissionsOfAUserChangeLast(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	user, password := b.User(t, "administrator", ".*", ".*", ".*")
	narrows := make(chan bool, 1)
	endpoint := b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodDelete {
			brokertest.Within(narrows, 2*time.Second)
		}
		api.ServeHTTP(w, r)
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/permissions/") {
			narrows <- true
		}
	})
	config := func(permission, more string) string {
		return strings.NewReplacer("VHOST", b.Vhost, "USER", user, "PERMISSION", permission).Replace(`
resource "rabbitmq_user" "own" {
  name        = "USER"
  tags        = ["administrator"]
  permissions = { "VHOST" = { configure = "PERMISSION", write = "PERMISSION", read = "PERMISSION" } }
}` + more)
	}
	tf := run(t, endpoint, user, password, config(".*", strings.ReplaceAll(`
resource "rabbitmq_queue" "q" {
  vhost = "VHOST"
  name  = "q"
}`, "VHOST", b.Vhost)))
	tf.Run(t, "import", "rabbitmq_user.own", user)
	tf.Run(t, "apply", "-auto-approve")
	<-narrows // the import leaves permissions to the first apply
	tf.Write(t, "main.tf", terraformtest.Required+config("^none$", ""))
	tf.Run(t, "apply", "-auto-approve")
	require.Empty(t, acctest.Names(t, b, "queues"))
}

// Terraform would destroy and create these objects at the same time, and what others have there would be lost.
func TestAcc_ObjectsThatGetAnotherAddress(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	// Without a reference: an error of the user's resource would leave its permissions out of the plan.
	user, _ := b.User(t, "", "", "", "")
	b.Call(t, http.MethodDelete, b.Path("permissions", user), nil, nil)
	at := func(address string) string {
		return strings.NewReplacer("VHOST", b.Vhost, "ADDRESS", address, "PERMITTED", user).Replace(`
resource "rabbitmq_vhost" "ADDRESS" { name = "VHOST.more" }
resource "rabbitmq_user" "ADDRESS" { name = "VHOST.user" }
resource "rabbitmq_permissions" "ADDRESS" {
  vhost = "VHOST"
  user  = "PERMITTED"
  read  = "^r"
}
resource "rabbitmq_exchange" "ADDRESS" {
  vhost = "VHOST"
  name  = "e"
  type  = "fanout"
}
resource "rabbitmq_queue" "ADDRESS" {
  vhost = "VHOST"
  name  = "q"
}
resource "rabbitmq_policy" "ADDRESS" {
  vhost      = "VHOST"
  name       = "p"
  pattern    = "^none$"
  definition = { max-length = 1 }
}`)
	}
	tf := run(t, b.Endpoint, b.Username, b.Password, at("before"))
	tf.Run(t, "apply", "-auto-approve")
	tf.Write(t, "main.tf", terraformtest.Required+at("after"))
	printed, code := tf.Exit(t, "plan", "-no-color")
	require.Equal(t, 1, code, printed)
	moves := ""
	for kind, title := range map[string]string{
		"vhost": "Virtual host", "user": "User", "permissions": "Permissions", "exchange": "Exchange", "queue": "Queue", "policy": "Policy",
	} {
		require.Contains(t, printed, "Error: "+title+" is destroyed and created")
		moves += strings.ReplaceAll("moved {\n  from = TYPE.before\n  to   = TYPE.after\n}\n", "TYPE", "rabbitmq_"+kind)
	}
	imports := ""
	for kind, id := range map[string]string{"vhost": b.Vhost + ".more", "queue": url.PathEscape(b.Vhost) + "/q"} {
		imports += fmt.Sprintf("import {\n  to = rabbitmq_%s.after\n  id = %q\n}\n", kind, id)
	}
	tf.Write(t, "imports.tf", imports)
	printed, code = tf.Exit(t, "plan", "-no-color")
	require.Equal(t, 1, code, printed)
	require.Contains(t, printed, "Error: Virtual host is destroyed and created")
	require.Contains(t, printed, "Error: Queue is destroyed and created")
	require.NoError(t, os.Remove(filepath.Join(tf.Dir, "imports.tf")))

	tf.Write(t, "moved.tf", moves)
	printed, code = tf.Exit(t, "plan", "-detailed-exitcode", "-no-color")
	require.Equal(t, 2, code, printed)
	require.Contains(t, printed, "Plan: 0 to add, 0 to change, 0 to destroy.")

	require.NoError(t, os.Remove(filepath.Join(tf.Dir, "moved.tf")))
	b.Call(t, http.MethodDelete, b.Path("exchanges", "e"), nil, nil)
	printed, code = tf.Exit(t, "plan", "-no-color", "-target=rabbitmq_exchange.before", "-target=rabbitmq_exchange.after")
	require.Zero(t, code, printed) // nothing is destroyed
	tf.Write(t, "moved.tf", moves)
	tf.Run(t, "apply", "-auto-approve")
	tf.Run(t, "destroy", "-auto-approve")
}

// Permissions that move from one resource to another in one apply stay, in whatever order Terraform changes the two.
func TestAcc_PermissionsMoveToAnotherResource(t *testing.T) {
	t.Parallel()
	for _, slow := range []string{http.MethodDelete, http.MethodPut} {
		t.Run(slow, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			endpoint := b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
				if r.Method == slow {
					time.Sleep(500 * time.Millisecond)
				}
				api.ServeHTTP(w, r)
			})
			name := b.Vhost + "-mover"
			configuration := strings.NewReplacer("VHOST", b.Vhost, "USER", name)
			alone := configuration.Replace(`
resource "rabbitmq_user" "u" { name = "USER" }
resource "rabbitmq_permissions" "p" {
  vhost = "VHOST"
  user  = "USER"
  read  = "^r"
}`)
			within := configuration.Replace(`
resource "rabbitmq_user" "u" {
  name        = "USER"
  permissions = { "VHOST" = { configure = "", write = "", read = "^r" } }
}`)
			tf := run(t, endpoint, b.Username, b.Password, within)
			for _, config := range []string{within, alone, within} {
				tf.Write(t, "main.tf", terraformtest.Required+config)
				tf.Run(t, "apply", "-auto-approve")
				var live struct{ Read string }
				b.Call(t, http.MethodGet, b.Path("permissions", name), nil, &live)
				require.Equal(t, "^r", live.Read)
				printed, code := tf.Exit(t, "plan", "-detailed-exitcode", "-no-color")
				require.Zero(t, code, printed)
			}
			tf.Run(t, "destroy", "-auto-approve")
		})
	}
}

// A re-creation that was killed leaves notes of bindings. Their own resources create them again in the apply that restores them.
func TestAcc_BindingAfterAKilledRecreation(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	tf := boundQueue(t, b)
	note := notes.Notes{"amq.direct"}.Of(topology.Binding{Source: "amq.topic", Destination: "q", RoutingKey: "key"}, "")
	unbind(t, b, "amq.topic", "key")
	b.Call(t, http.MethodPost, b.Path("bindings", "e", note.Source, "e", note.Destination),
		map[string]any{"routing_key": note.RoutingKey, "arguments": note.Arguments}, nil)
	_, err := tf.Try(t.Context(), "destroy", "-auto-approve", "-no-color")
	require.ErrorContains(t, err, "Error: Bindings are missing")
	tf.Run(t, "apply", "-auto-approve")
	printed, code := tf.Exit(t, "plan", "-detailed-exitcode", "-no-color")
	require.Zero(t, code, printed)
	tf.Run(t, "destroy", "-auto-approve")
}

// A new vhost whose limits are refused is deleted, unless others have queues in it by then.
func TestAcc_VhostThatOthersUseStays(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	name := b.Vhost + ".new"
	queue := "/api/queues/" + url.PathEscape(name) + "/precious"
	c := core("rabbitmq_vhost", map[string]any{"name": name, "max_queues": 5})
	c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "/vhost-limits/") {
			b.Call(t, http.MethodPut, queue, map[string]any{"durable": true}, nil)
			http.Error(w, `{"error":"bad_request","reason":"not today"}`, http.StatusBadRequest)
			return
		}
		api.ServeHTTP(w, r)
	})
	t.Cleanup(func() { _, _ = b.Request(t, http.MethodDelete, "/api/vhosts/"+url.PathEscape(name), nil) })
	_, err := c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "not today")
	status, _ := b.Request(t, http.MethodGet, queue, nil)
	require.Equal(t, http.StatusOK, status)
}

// A broker that is cut off before the end of the creation has not given the creator its permissions.
func TestAccEveryRelease_CreatorOfAVhostHasPermissions(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	name := b.Vhost + ".new"
	c := core("rabbitmq_vhost", map[string]any{"name": name})
	permission := "/api/permissions/" + url.PathEscape(name) + "/" + url.PathEscape(b.Username)
	c.Endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/api/vhosts/") {
			api.ServeHTTP(httptest.NewRecorder(), r)
			b.Call(t, http.MethodDelete, permission, nil, nil)
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	})
	t.Cleanup(func() { _, _ = b.Request(t, http.MethodDelete, "/api/vhosts/"+url.PathEscape(name), nil) })
	c.MustApply(t)
	b.Call(t, http.MethodPut, "/api/queues/"+url.PathEscape(name)+"/q", map[string]any{"durable": true}, nil)
}

// Statistics that are older than the destroy do not show a message that a consumer has just taken.
func TestAccEveryRelease_QueueWithAHeldMessageStays(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, kind string) {
		b := brokertest.New(t)
		c := core("rabbitmq_queue", map[string]any{"name": "q", "vhost": b.Vhost, "type": kind})
		c.Times = acctest.Times()
		c.MustApply(t)
		acctest.AwaitCount(t, b, "q", 0)
		_, deliveries := b.Consume(t, "q", 1)
		awaitConsumer(t, b, "q") // without a consumer, the plan refuses already
		b.Publish(t, "", "q", amqp.Publishing{DeliveryMode: amqp.Persistent})
		<-deliveries
		require.ErrorContains(t, c.Destroy(t.Context()), "would lose messages")
	})
}
