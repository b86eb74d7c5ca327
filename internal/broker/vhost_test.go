package broker

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The list of vhosts has gaps while others are deleted, which is nobody's mistake.
func TestVhostsAreListedWhileOthersAreDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	deleting := make(chan struct{})
	var churn sync.WaitGroup
	for i := range 3 {
		churn.Go(func() {
			for k := range 40 {
				vhost := path("vhosts", fmt.Sprintf("%s-%d-%d", b.Vhost, i, k))
				b.Request(t, http.MethodPut, vhost, nil)
				b.Request(t, http.MethodDelete, vhost, nil)
			}
		})
	}
	go func() { churn.Wait(); close(deleting) }()
	for {
		vhosts, err := c.vhosts(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range vhosts {
			if v.Name == b.Vhost && len(v.ClusterState) == 0 {
				t.Errorf("the nodes of %q are missing", v.Name)
			}
		}
		select {
		case <-deleting:
			return
		default:
		}
	}
}
