package apply

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// A proxy answers all reads in the broker's place from the middle of a proof on: nothing is deleted, the bindings are
// back, the error says where to look, and the next change finds nothing left to do.
func TestReadsThatFailDuringAProofDeleteNothing(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*Applier, Change) error{
		"removal": func(a *Applier, c Change) error { return a.Remove(t.Context(), c) },
		"update":  func(a *Applier, c Change) error { _, err := a.Update(t.Context(), c); return err },
	} {
		for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusNotFound} {
			t.Run(name+", "+http.StatusText(status), func(t *testing.T) {
				t.Parallel()
				b := brokertest.New(t)
				p := declaring(t, b)
				returns := p.Names().DeclaredBinding("declared").String()
				a, without := newApplier(t, b, b.Endpoint), small(b)
				wanted := map[string]*pipeline.Pipeline{"update": &without}[name]
				var ill atomic.Bool
				through := newApplier(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
					if r.Method == http.MethodGet && ill.Load() {
						w.WriteHeader(status)
						_, _ = w.Write([]byte("<html>no such backend</html>"))
						return
					}
					if r.Method == http.MethodDelete && strings.Contains(r.URL.Path, "/q/declared/") {
						ill.Store(true)
					}
					api.ServeHTTP(w, r)
				}))
				err := do(through, noting(t, a, p, wanted))
				if err == nil || !ill.Load() || !strings.Contains(err.Error(), "no such backend") {
					t.Fatalf("got %v", err)
				}
				if now := list(t, a, b.Vhost); len(now.Queues) < len(pipeline.Expand(p).Queues) || !strings.Contains(bindings(t, a, b), returns) {
					t.Errorf("left: %v; bindings:\n%s", now.Queues, bindings(t, a, b))
				}
				if _, err := a.Update(t.Context(), noting(t, a, p, &p)); err != nil {
					t.Fatal(err)
				}
				if c := noting(t, a, p, &p); !topology.Diff(c.Wanted, c.Live).Empty() {
					t.Errorf("the change is not finished; bindings:\n%s", bindings(t, a, b))
				}
			})
		}
	}
}
