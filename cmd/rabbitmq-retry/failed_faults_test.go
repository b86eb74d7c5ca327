package main

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest/amqp10"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// For all commands alike, the environment and the flags name certificates, as files and as text. A URI with its own
// certificates keeps them.
func TestCertificatesOfEnvironmentAndFlags(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	server, ca := brokertest.ServerTLS(t)
	trusted, cert, key := brokertest.ClientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	text := func(file string) string {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(content)
	}
	uri := o.ThroughTLS(t, server)
	files := []string{"--cacert", ca, "--clientcert", cert, "--clientkey", key}
	check := append([]string{"worker", "--check"}, files...)
	list := []string{"failed", "list", "orders"}
	inText := map[string]string{"RABBITMQ_CACERT_PEM": text(ca), "RABBITMQ_CLIENTCERT_PEM": text(cert), "RABBITMQ_CLIENTKEY_PEM": text(key)}
	for name, c := range map[string]struct {
		uri  string
		env  map[string]string
		args []string
		want string // "" if TLS accepts the command
	}{
		"worker, files in the environment": {uri, map[string]string{"RABBITMQ_CACERT": ca, "RABBITMQ_CLIENTCERT": cert, "RABBITMQ_CLIENTKEY": key}, []string{"worker", "--check"}, ""},
		"worker, text":                     {uri, inText, []string{"worker", "--check"}, ""},
		"worker, flags":                    {uri, nil, check, ""},
		"failed, text":                     {uri, inText, list, ""},
		"failed, URI":                      {o.ThroughTLS(t, server, "cacertfile", ca, "certfile", cert, "keyfile", key), nil, list, ""},
		"status, text":                     {uri, inText, []string{"status", "orders"}, ""},
		"failed, flags":                    {uri, nil, append(list, files...), ""},
		"flag before environment":          {uri, inText, append(list, "--cacert", cert), "unknown authority"},
		"URI before environment":           {o.ThroughTLS(t, server, "cacertfile", cert), inText, list, "unknown authority"},
		"environment without TLS":          {o.URI, inText, list, ""},
		"flag without TLS":                 {o.URI, nil, append(list, "--cacert", ca), "a connection without TLS takes no certificates; write amqps://"},
		"key in place of its file":         {uri, map[string]string{"RABBITMQ_CLIENTKEY": text(key)}, list, "set RABBITMQ_CLIENTKEY_PEM to the contents"},
		"key in a flag":                    {uri, nil, append(list, "--clientkey", text(key)), "--clientkey must be the name of a file, not its contents: set RABBITMQ_CLIENTKEY_PEM to the contents"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{cli.EnvURI: c.uri, cli.EnvConfigJSON: goodConfig}
			maps.Copy(env, c.env)
			_, stdout, stderr := execute(t.Context(), env, c.args...)
			output := stdout + stderr
			reached := !strings.Contains(output, "tls: ") && !strings.Contains(output, "certificate") && !strings.Contains(output, "contents")
			assert.Truef(t, reached == (c.want == "") && strings.Contains(output, c.want) && !strings.Contains(output, "BEGIN"),
				"%s, want %q", output, c.want)
		})
	}
}

// Messages that cannot be replayed are named, and stay.
func TestReplayTexts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *testing.T, o orders)
		args  string
		want  []string
		left  int
	}{
		"no exchange": {
			func(t *testing.T, o orders) {
				o.Call(t, http.MethodDelete, o.Path("exchanges", "orders.return"), nil, nil)
			}, "",
			[]string{`exchange "orders.return" does not exist: run terraform apply`},
			3,
		},
		"no queue": {
			func(*testing.T, orders) {},
			" --to nowhere",
			[]string{`3 messages returned, since no queue is bound for them: there is no queue "nowhere"`},
			3,
		},
		// The message goes to the inbox, where a worker would take it.
		"no binding and no worker": {
			func(t *testing.T, o orders) { o.unbind(t) },
			" --wait=10ms",
			[]string{"no worker consumes orders.inbox, which has 3 messages. Messages that fail again, or whose work queue is not bound to orders.return, stay there and cannot come back. Start a worker."},
			0,
		},
		"no binding and no alternate exchange": {
			func(t *testing.T, o orders) {
				o.Call(t, http.MethodDelete, o.Path("exchanges", "orders.return"), nil, nil)
				require.NoError(t, o.Channel(t).ExchangeDeclare("orders.return", "direct", true, false, false, false, nil))
			}, "",
			[]string{"3 messages returned, since no queue is bound for them to orders.return: run terraform apply, or write --to"},
			3,
		},
		"full queue": {
			func(t *testing.T, o orders) {
				o.DeclareQueue(t, "full", "classic", map[string]any{"x-max-length": 1, "x-overflow": "reject-publish"})
			},
			" --to full",
			[]string{"2 messages refused by the broker: a queue is full, or has no leader: add consumers or raise a limit", "replayed 1 of 3"},
			2,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := newOrders(t, "quorum")
			for _, id := range []string{"order-1", "order-2", "order-3"} {
				o.park(t, "exhausted", id)
			}
			test.spoil(t, o)
			o.says(t, exitError, "failed replay orders --all --yes"+test.args, test.want...)
			assert.Len(t, o.contents(t), test.left)
		})
	}
}

// unbind removes the work queue's binding to the pipeline.
func (o orders) unbind(t *testing.T) {
	t.Helper()
	require.NoError(t, o.Channel(t).QueueUnbind("orders.created", "return:orders.created", "orders.return", nil))
}

// If AMQP 0-9-1 cannot carry a message, each command fails with advice. The command repair replaces the message by a copy
// that AMQP 0-9-1 can carry, and changes nothing else.
func TestRepair(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		o.failedExchange(t)
		if !o.VersionAtLeast("4.0") {
			o.says(t, exitOK, "failed repair orders --yes", "orders.failed is empty")
			o.park(t, "exhausted", "one")
			code, said := exitError, "needs the plugin rabbitmq_amqp1_0"
			if o.SpeaksAMQP10(t) {
				code, said = exitOK, "all others put back"
			}
			o.says(t, code, "failed repair orders --yes", said, "replaced 0 messages")
			return
		}
		const others = 300
		for i := range others {
			o.park(t, "exhausted", fmt.Sprintf("order-%d", i))
		}
		before := o.contents(t)
		sender := amqp10.Dial(t, o.Broker).To(t, "/queues/orders.failed")
		for i := range 2 {
			sender.Send(t, amqp10.Message{
				ApplicationProperties: amqp10.Map(amqp10.Text("tenant"), amqp10.UUID()), Data: []byte(fmt.Sprintf("odd-%d", i)),
			}.Encode())
		}
		o.park(t, "exhausted", "last")
		for _, args := range []string{
			"list orders", "export orders", "replay orders --all --yes", "delete orders --all --discard --yes",
		} {
			stderr := ""
			brokertest.Eventually(t, func() error { // if the broker is busy, its reason can be lost with the connection
				if _, stderr = o.run(t, exitError, "failed "+args); strings.Contains(stderr, "connection to the broker is lost") {
					return errors.New(stderr)
				}
				return nil
			})
			contains(t, stderr, "published over AMQP 1.0 and that AMQP 0-9-1 cannot carry",
				"rabbitmq-retry failed repair orders --vhost "+o.Vhost+" replaces it by a copy that can be read")
		}
		o.holds(t, "orders.failed", others+3) // the broker takes them back from the connections that it closed
		o.says(t, exitUsage, "failed repair orders", "write --yes")
		o.as(t, "", "orders").says(t, exitError, "failed repair orders --yes", "orders.failed", "ACCESS_REFUSED", "replaced 0 messages")
		o.holds(t, "orders.failed", others+3)

		o.says(t, exitOK, "failed repair orders --yes",
			"replaced 2 messages in orders.failed; all others put back", `"command":"repair"`, `"replaced":2`)
		o.holds(t, "orders.failed", others+3)
		after := o.contents(t)
		odd := 0
		for id, m := range after {
			if _, there := before[id]; !there && strings.HasPrefix(string(m.Body), "odd-") {
				odd++
			}
			delete(before, id)
		}
		assert.Truef(t, len(after) == others+3 && len(before) <= 0 && odd == 2,
			"%d messages, of those before %d are missing, %d copies", len(after), len(before), odd)
		o.prints(t, exitOK, "failed export orders", "AMQP 0-9-1 cannot carry the original message: ", `"body":"odd-1"`)
		o.says(t, exitOK, "failed repair orders --yes", "replaced 0 messages")
	})
}

// AMQP 1.0 shows nothing wrong with a message whose consumer has copied the broker's annotations.
func TestRepairOfCopiedDeaths(t *testing.T) {
	t.Parallel()
	brokertest.QueueTypes(t, func(t *testing.T, queueType string) {
		o := newOrders(t, queueType)
		o.Needs(t, brokertest.Release(">= 4.0"))
		if queueType == "quorum" { // the limit of a pipeline's failed queue
			_, err := o.Channel(t).QueueDelete("orders.failed", false, false, false)
			require.NoError(t, err)
			o.DeclareQueue(t, "orders.failed", queueType, map[string]any{"x-delivery-limit": topology.UnreachableDeliveryLimit})
		}
		o.failedExchange(t)
		o.DeclareQueue(t, "source", "quorum", map[string]any{"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "orders.failed"})
		client := amqp10.Dial(t, o.Broker)
		const spoiled, others = 3, 150
		messages := []amqp10.Message{}
		for i := range spoiled {
			messages = append(messages, amqp10.Message{
				Properties: amqp10.List(amqp10.Text(fmt.Sprint("spoiled-", i))), Data: []byte(fmt.Sprint("body-", i)),
			})
		}
		client.Spoil(t, "source", "orders.failed", messages...)
		sender := client.To(t, "/queues/source")
		for i := range others {
			sender.Send(t, amqp10.Message{Properties: amqp10.List(amqp10.Text(fmt.Sprint("order-", i)))}.Encode())
		}
		client.Reject(t, "source", others)
		for i := range others {
			o.park(t, "exhausted", fmt.Sprint("order-", others+i))
		}
		o.holds(t, "orders.failed", spoiled+2*others)
		o.says(t, exitError, "failed list orders", "failed repair orders")
		o.holds(t, "orders.failed", spoiled+2*others)
		o.prints(t, exitFound, "status orders --look", "over AMQP 0-9-1; run rabbitmq-retry failed repair")
		o.holds(t, "orders.failed", spoiled+2*others)
		o.says(t, exitOK, "failed repair orders --yes", "replaced 3 messages in orders.failed; all others put back")
		o.holds(t, "orders.failed", spoiled+2*others)
		seen := map[string]bool{}
		for range spoiled + 2*others {
			d, _ := o.Get(t, "orders.failed")
			seen[d.MessageId] = true
			_, repaired := d.Headers["dead-letter-error"]
			number, spoiled := strings.CutPrefix(d.MessageId, "spoiled-")
			assert.Equal(t, spoiled, repaired, "%s %v", d.MessageId, d.Headers)
			if spoiled {
				assert.Equal(t, "body-"+number, string(d.Body))
			}
		}
		assert.Len(t, seen, spoiled+2*others)
	})
}

// A broker closes the channel over direct reply-to, in the middle of other publishes.
func TestReplayOfDirectReplyTo(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.Needs(t, brokertest.Release(">= 4.0"))
	const messages, every = 300, 100
	sender := amqp10.Dial(t, o.Broker).To(t, "/queues/orders.failed")
	for i := range messages {
		replyTo := amqp10.Null
		if i%every == every-1 {
			replyTo = amqp10.Text("amq.rabbitmq.reply-to")
		}
		sender.Send(t, amqp10.Message{
			Properties:            amqp10.List(amqp10.Text(fmt.Sprintf("order-%d", i)), amqp10.Null, amqp10.Null, amqp10.Null, replyTo),
			ApplicationProperties: amqp10.Map(amqp10.Text("dead-letter-reason"), amqp10.Text("exhausted"), amqp10.Text("retry-queue"), amqp10.Text("orders.created")),
		}.Encode())
	}
	o.holds(t, "orders.failed", messages)
	o.says(t, exitOK, "failed replay orders --all --yes", "replayed 300 of 300 to orders.created")
	o.holds(t, "orders.created", messages)
	for i := range messages {
		d, _ := o.Get(t, "orders.created")
		assert.Equal(t, fmt.Sprintf("order-%d", i), d.MessageId)
		assert.Equal(t, i%every == every-1, d.Headers["retry-reply-to"] == "amq.rabbitmq.reply-to", i)
	}
}

func TestImportOfDirectReplyTo(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	o.failedExchange(t)
	o.park(t, "exhausted", "order-1")
	line, _ := o.run(t, exitOK, "failed export orders")
	file := filepath.Join(t.TempDir(), "failed.jsonl")
	edited := strings.Replace(line, `"properties":{`, `"properties":{"reply_to":"amq.rabbitmq.reply-to",`, 1)
	require.NoError(t, os.WriteFile(file, []byte(line+edited+line), 0o600))
	o.says(t, exitOK, "failed import orders "+file+" --yes",
		"imported 2 of 3", "1 message in the queue already", "1 of them: reply-to amq.rabbitmq.reply-to moved to the header retry-reply-to")
}
