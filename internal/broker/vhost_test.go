package broker

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The list of vhosts has gaps while others are deleted, which is nobody's mistake.
func TestVhostsAreListedWhileOthersAreDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	listedGap := false
	c := newClient(t, b, b.After(t, func(_ *http.Request, answer *httptest.ResponseRecorder) {
		list := answer.Body.Bytes()
		listedGap = listedGap || bytes.Contains(list, []byte("[[]")) || bytes.Contains(list, []byte(",[]"))
	}))
	stop := make(chan struct{})
	churned := churnVhosts(t, b, stop)
	defer func() { close(stop); <-churned }()
	for listing := true; listing && !listedGap; {
		select {
		case <-churned:
			listing = false // this release has no gaps
		default:
		}
		vhosts, err := c.vhosts(t.Context())
		require.NoError(t, err)
		for _, v := range vhosts {
			if v.Name == b.Vhost && len(v.ClusterState) == 0 {
				t.Errorf("the nodes of %q are missing", v.Name)
			}
		}
	}
}

// churnVhosts creates and deletes vhosts for a while, or until it is stopped.
func churnVhosts(t *testing.T, b *brokertest.Broker, stop <-chan struct{}) (churned <-chan struct{}) {
	t.Helper()
	var churn sync.WaitGroup
	for i := range 3 {
		churn.Go(func() {
			for k := range 15 {
				select {
				case <-stop:
					return
				default:
				}
				vhost := path("vhosts", fmt.Sprintf("%s-%d-%d", b.Vhost, i, k))
				b.Request(t, http.MethodPut, vhost, nil)
				b.Request(t, http.MethodDelete, vhost, nil)
			}
		})
	}
	done := make(chan struct{})
	go func() { churn.Wait(); close(done) }()
	return done
}
