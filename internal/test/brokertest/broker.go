package brokertest

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-version"
	amqp "github.com/rabbitmq/amqp091-go"
)

// A Broker is one virtual host of a running RabbitMQ, with the addresses and credentials to reach it.
type Broker struct {
	Vhost    string
	Endpoint string // of the management API, such as http://127.0.0.1:15672
	URI      string // amqp://user:password@host:port, without a virtual host
	Username string // an administrator, with every permission in Vhost
	Password string
	Version  string // of the broker, such as 4.0.5

	needs []Need // of the test

	mu   sync.Mutex
	conn *amqp.Connection // shared by Channel, Get and Publish
}

// New makes a virtual host named after the test. A slash, which separates subtests, becomes a dot. To test names that need
// escaping, use [NewNamed].
func New(t testing.TB) *Broker {
	t.Helper()
	return NewNamed(t, strings.ReplaceAll(t.Name(), "/", "."))
}

// NewNamed is [New] with a prefix for the virtual host's name, such as "needs/escaping %".
func NewNamed(t testing.TB, prefix string) *Broker {
	t.Helper()
	b := WithoutVhost(t)
	b.Vhost = unique(prefix)
	t.Cleanup(func() { b.remove(t) })
	b.create(t)
	b.permit(t, b.Username, ".*", ".*", ".*")
	t.Cleanup(b.hangUp) // before the deletion, which would cut the connection
	return b
}

// WithQueues is [New] with these quorum queues.
func WithQueues(t testing.TB, queues ...string) *Broker {
	t.Helper()
	b := New(t)
	for _, queue := range queues {
		b.DeclareQueue(t, queue, "quorum", nil)
	}
	return b
}

// QueueTypes runs a test with quorum queues and with classic ones.
func QueueTypes(t *testing.T, test func(t *testing.T, queueType string)) {
	t.Helper()
	for _, queueType := range []string{"quorum", "classic"} {
		t.Run(queueType, func(t *testing.T) {
			t.Parallel()
			test(t, queueType)
		})
	}
}

// WithoutVhost is a broker without a virtual host of the test.
func WithoutVhost(t testing.TB) *Broker {
	t.Helper()
	b := &Broker{
		Endpoint: strings.TrimSuffix(os.Getenv("RABBITMQ_ENDPOINT"), "/"),
		URI:      os.Getenv("RABBITMQ_URI"),
		Username: os.Getenv("RABBITMQ_USERNAME"),
		Password: os.Getenv("RABBITMQ_PASSWORD"),
	}
	if b.Endpoint == "" || b.URI == "" || b.Username == "" {
		t.Fatal("no broker: RABBITMQ_ENDPOINT, RABBITMQ_URI and RABBITMQ_USERNAME are not all set; " +
			"run `make test`, or `scripts/with-broker -- go test ...`")
	}
	var overview struct {
		Version string `json:"rabbitmq_version"`
	}
	b.Call(t, http.MethodGet, "/api/overview", nil, &overview)
	b.Version = overview.Version
	return b
}

// Statistics is the interval at which the broker gathers statistics.
func Statistics() time.Duration {
	seconds, err := strconv.Atoi(os.Getenv("TEST_STATISTICS"))
	if err != nil {
		seconds = 5
	}
	return time.Duration(seconds) * time.Second
}

// VersionAtLeast reports whether the broker's release is this one, such as "4.0", or a later one.
func (b *Broker) VersionAtLeast(want string) bool {
	return version.Must(version.NewVersion(b.Version)).Core().GreaterThanOrEqual(version.Must(version.NewVersion(want)))
}

// HasPlugin reports whether a plugin is enabled on the broker. It waits for a broker that has just started.
func (b *Broker) HasPlugin(t testing.TB, name string) bool {
	t.Helper()
	var nodes []struct {
		Plugins []string `json:"enabled_plugins"`
	}
	Eventually(t, func() error {
		b.Call(t, http.MethodGet, "/api/nodes", nil, &nodes)
		if len(nodes) == 0 || len(nodes[0].Plugins) == 0 {
			return errors.New("the broker does not say which plugins it has")
		}
		return nil
	})
	return slices.Contains(nodes[0].Plugins, name)
}

// SpeaksAMQP10 reports whether the broker speaks AMQP 1.0. RabbitMQ does since 4.0, and RabbitMQ 3 does with a plugin.
func (b *Broker) SpeaksAMQP10(t testing.TB) bool {
	t.Helper()
	return b.VersionAtLeast("4.0") || b.HasPlugin(t, "rabbitmq_amqp1_0")
}

// unique returns a name of at most 255 bytes, AMQP's limit.
func unique(prefix string) string {
	random := make([]byte, 4)
	_, _ = rand.Read(random) // never fails
	return prefix[:min(len(prefix), 200)] + "-" + hex.EncodeToString(random)
}
