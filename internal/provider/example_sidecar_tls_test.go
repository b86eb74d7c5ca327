package provider_test

import (
	"crypto/tls"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// The example's script takes the certificates that the provider takes: of a private authority, and those with which a
// client has to identify itself.
func TestAcc_ExampleOfTheSidecarsUserWithClientCertificates(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "orders.created", "quorum", nil)
	server, ca := brokertest.ServerTLS(t)
	trusted, cert, key := brokertest.ClientCertificate(t)
	server.ClientAuth, server.ClientCAs = tls.RequireAndVerifyClientCert, trusted
	e := newExample(t, "sidecar")
	e.Env = append(e.Env, "RABBITMQ_ENDPOINT="+b.EndpointThroughTLS(t, server), "RABBITMQ_CACERT="+ca)
	without := slices.Clone(e.Env)
	e.Env = append(e.Env, "RABBITMQ_CLIENTCERT="+cert, "RABBITMQ_CLIENTKEY="+key)
	e.Run(t, "apply", "-auto-approve", "-input=false", "-var", "vhost="+b.Vhost)

	user := "retry-" + b.Vhost[len(b.Vhost)-8:]
	t.Cleanup(func() { b.Request(t, "DELETE", "/api/users/"+user, nil) })
	credentials := filepath.Join(e.Dir, "credentials")
	command := exec.CommandContext(t.Context(), "./create-user.sh", user, credentials)
	command.Dir, command.Env = e.Dir, without
	if output, err := command.CombinedOutput(); err == nil || !strings.Contains(string(output), "RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY") {
		t.Errorf("without certificate: %v, %s", err, output)
	}
	if said := e.run(t, "./create-user.sh", user, credentials); !strings.HasPrefix(said, "User "+user+" has the permissions") {
		t.Errorf("says %q", said)
	}
	if status, _ := b.Request(t, "GET", b.Path("permissions", user), nil); status != 200 {
		t.Errorf("the permissions of %s: %d", user, status)
	}
}
