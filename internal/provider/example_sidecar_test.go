package provider_test

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// The example's script creates the user that the pipeline's sidecar needs. Its password is only in its file, and is new each
// time.
func TestAccEveryRelease_ExampleOfTheSidecarsUser(t *testing.T) {
	t.Parallel()
	b := brokertest.NewNamed(t, "a vhost/ü %")
	b.DeclareQueue(t, "orders.created", "quorum", nil)
	e := newExample(t, "sidecar")
	e.Run(t, "apply", "-auto-approve", "-input=false", "-var", "vhost="+b.Vhost)

	user := "retry-" + b.Vhost[len(b.Vhost)-8:] // as unique as the vhost
	credentials := filepath.Join(e.Dir, "credentials")
	t.Cleanup(func() { b.Request(t, http.MethodDelete, "/api/users/"+user, nil) })
	admin := "admin-" + user
	t.Cleanup(func() { b.Request(t, http.MethodDelete, "/api/users/"+admin, nil) })
	hostile := `a "b\" c\\d : $(e) '`
	b.Request(t, http.MethodPut, "/api/users/"+admin, map[string]string{"password": hostile, "tags": "administrator"})
	e.Env = append(e.Env, "RABBITMQ_USERNAME="+admin, "RABBITMQ_PASSWORD="+hostile)
	e.run(t, "./create-user.sh", user, credentials)
	first := readFile(t, filepath.Join(credentials, "password"))
	if said := e.run(t, "./create-user.sh", user, credentials); !strings.HasPrefix(said, "User "+user+" has the permissions") || strings.Contains(said, first) {
		t.Errorf("says %q", said)
	}
	password := readFile(t, filepath.Join(credentials, "password"))
	if len(password) < 32 || first == password {
		t.Errorf("passwords of %d and %d bytes", len(first), len(password))
	}

	e.failsToMakeUser(t, credentials)

	var permissions, want struct{ Configure, Write, Read string }
	b.Call(t, http.MethodGet, b.Path("permissions", user), nil, &permissions)
	require.NoError(t, json.Unmarshal([]byte(e.Run(t, "output", "-json", "worker_permissions")), &want))
	if permissions != want || want.Configure != "^$" {
		t.Errorf("permissions %+v, want %+v", permissions, want)
	}
	if strings.Contains(readFile(t, filepath.Join(e.Dir, "terraform.tfstate")), password) {
		t.Error("the password is in the state")
	}
	if info, err := os.Stat(filepath.Join(credentials, "password")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the password's file: %v, %v", info.Mode(), err)
	}

	e.Write(t, "worker.json", e.Run(t, "output", "-raw", "worker_config"))
	e.Env = append(e.Env, "RABBITMQ_URI="+strings.Replace(b.URI, b.Username+":"+b.Password, user+":"+password, 1))
	if output := e.run(t, terraformtest.BuildSidecar(t), "worker", "--check", "--config", "worker.json"); !strings.Contains(output, "ok: orders.inbox") {
		t.Errorf("the sidecar's check: %s", output)
	}
}

// failsToMakeUser checks the script's messages and leftovers when it cannot do its work.
func (e example) failsToMakeUser(t *testing.T, credentials string) {
	t.Helper()
	for want, c := range map[string]struct{ arguments, env []string }{
		"usage: create-user.sh USER DIRECTORY": {nil, nil},
		"RABBITMQ_ENDPOINT: is not set":        {[]string{"retry", credentials}, []string{"RABBITMQ_ENDPOINT="}},
		"curl: (":                              {[]string{"retry", credentials}, []string{"RABBITMQ_ENDPOINT=http://127.0.0.1:1"}},
	} {
		command := exec.CommandContext(t.Context(), "./create-user.sh", c.arguments...)
		command.Dir, command.Env = e.Dir, append(slices.Clone(e.Env), c.env...)
		output, err := command.CombinedOutput()
		if err == nil || !strings.Contains(string(output), want) {
			t.Errorf("%v, %q, want %q", err, output, want)
		}
	}
	left, err := filepath.Glob(credentials + "*/*")
	if err != nil || len(left) != 2 || readFile(t, filepath.Join(credentials, "username")) == "retry" {
		t.Errorf("what a failure leaves: %q, %v", left, err)
	}
}

// example is a copy of an example, with a way to run programs in it.
type example struct{ *terraformtest.CLI }

func newExample(t *testing.T, name string) example {
	t.Helper()
	e := example{terraformtest.New(t, terraformtest.BuildProvider(t), "TERRAFORM="+os.Getenv("TF_ACC_TERRAFORM_PATH"))}
	require.NoError(t, os.CopyFS(e.Dir, os.DirFS(filepath.Join("../../examples", name))))
	return e
}

// run returns a program's standard output.
func (e example) run(t *testing.T, program string, args ...string) string {
	t.Helper()
	var stderr strings.Builder
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir, command.Env, command.Stderr = e.Dir, e.Env, &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(program), strings.Join(args, " "), err, output, stderr.String())
	}
	return string(output)
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(content)
}

// The example's script accepts the same certificates as the provider: a private authority's, and client certificates.
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
