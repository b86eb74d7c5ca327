package acctest

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// Names lists the objects of a kind in the vhost, such as "queues".
func Names(t testing.TB, b *brokertest.Broker, kind string) []string {
	t.Helper()
	var objects []struct {
		Name string `json:"name"`
	}
	b.Call(t, http.MethodGet, b.Path(kind), nil, &objects)
	found := make([]string, 0, len(objects))
	for _, object := range objects {
		found = append(found, object.Name)
	}
	slices.Sort(found)
	return found
}

// AwaitCount waits until the management API reports so many messages in a queue.
func AwaitCount(t testing.TB, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var q struct {
			Messages *int `json:"messages"`
		}
		b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &q)
		if q.Messages == nil || *q.Messages != want {
			return fmt.Errorf("%s: messages %v, want %d", queue, q.Messages, want)
		}
		return nil
	})
}
