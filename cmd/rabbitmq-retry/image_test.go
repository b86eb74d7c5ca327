package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// What scripts/release-image gives the image.
const (
	imageUser    = 65532
	imageProgram = "/usr/local/bin/rabbitmq-retry"
)

// The examples' command lines work in a container that has only the image's files and the mounts, all read-only.
func TestExamplesRunInAnEmptyImage(t *testing.T) {
	t.Parallel()
	for name, deployment := range map[string]deployment{"Kubernetes": kubernetes(t), "Compose": compose(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, names := brokertest.New(t), pipeline.Names("orders")
			stage(t, b, names)
			permissions := pipeline.WorkerPermissions(names)
			user, password := b.User(t, "", permissions.Configure, permissions.Write, permissions.Read)

			image := newImage(t)
			image.add(t, deployment.config(), config(t, b.Vhost), 0o644)
			image.add(t, deployment.flag("username-file"), []byte(user), 0o440)
			image.add(t, deployment.flag("password-file"), []byte(password+"\n"), 0o440)

			address := freeAddress(t)
			broker, err := url.Parse(b.URI)
			require.NoError(t, err)
			args := slices.Concat(deployment.args, []string{"--uri=amqp://" + broker.Host, "--listen=" + address})
			worker := image.command(t, slices.DeleteFunc(args, func(arg string) bool {
				return arg == "--uri="+deployment.flag("uri") || arg == "--listen="+deployment.flag("listen")
			})...)
			var log bytes.Buffer
			worker.Stderr = &log
			worker.Env = append(worker.Env, cli.EnvConfig+"="+deployment.config())
			require.NoError(t, worker.Start())
			t.Cleanup(func() {
				_ = worker.Wait() // the end of the test's context can have ended it already
				if t.Failed() {
					t.Logf("the worker's log:\n%s", &log)
				}
			})
			for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
				brokertest.Eventually(t, func() error { return answers("http://" + address + path) })
			}
			require.NoError(t, worker.Process.Signal(syscall.SIGTERM))
			require.NoError(t, worker.Wait())
		})
	}
}

// stage creates the objects that the worker needs to consume.
func stage(t *testing.T, b *brokertest.Broker, names pipeline.Names) {
	t.Helper()
	b.Request(t, http.MethodPut, b.Path("queues", names.Inbox()), map[string]any{"durable": true})
	for _, exchange := range names.WorkerExchanges() {
		b.Request(t, http.MethodPut, b.Path("exchanges", exchange), map[string]any{"type": "direct", "durable": true})
	}
}

// config configures a pipeline named orders.
func config(t *testing.T, vhost string) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{{
		Version: pipeline.WorkerVersion, Name: "orders", Vhost: vhost, Delays: []string{"5s"}, MaxAttempts: 2, RetryOn: []string{"rejected"},
	}}})
	require.NoError(t, err)
	return data
}

// image is a root file system that its user can only read.
type image struct{ root string }

// newImage is the root file system of the released image, in the folder IMAGE, or one with only the program.
func newImage(t *testing.T) image {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root") //nolint:forbidigo // the public workflow runs this as root
	}
	i := image{root: t.TempDir()}
	if released := os.Getenv("IMAGE"); released != "" {
		require.NoError(t, exec.CommandContext(t.Context(), "cp", "--archive", released+"/.", i.root).Run())
		return i
	}
	i.add(t, imageProgram, read(t, terraformtest.BuildSidecar(t)), 0o755)
	return i
}

func (i image) add(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(i.root, path)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	writeProgram(t, path, content, mode)
	require.NoError(t, os.Chown(path, 0, imageUser))
}

// writeProgram writes an executable file. A process that is forked meanwhile does not inherit the open file, so the program
// can run at once.
func writeProgram(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	require.NoError(t, os.WriteFile(path, content, mode))
}

// command is the entry point of the image, run as its user.
func (i image) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// A test's directory can be closed to other users.
	require.NoError(t, os.Chmod(i.root, 0o755))
	command := exec.CommandContext(t.Context(), imageProgram, args...)
	command.Err = nil // exec looked for the program outside of the image
	command.Dir, command.Env = "/", []string{}
	command.SysProcAttr = &syscall.SysProcAttr{
		Chroot: i.root, Credential: &syscall.Credential{Uid: imageUser, Gid: imageUser},
	}
	return command
}

func answers(address string) error {
	response, err := http.Get(address) //nolint:noctx // of the test itself
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", address, response.Status)
	}
	return nil
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closes at once
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return data
}

// The image has the certificate authorities in the folder where Go looks for them.
func TestImageTrustsTheCertificatesThatItHolds(t *testing.T) {
	t.Parallel()
	b, names := brokertest.New(t), pipeline.Names("orders")
	stage(t, b, names)
	server, ca := brokertest.ServerTLS(t)
	image := newImage(t)
	image.add(t, "worker.json", config(t, b.Vhost), 0o644)
	image.add(t, "uri", []byte(b.ThroughTLS(t, server)), 0o440)

	check := []string{"worker", "--check", "--config=/worker.json", "--uri-file=/uri"}
	output, err := image.command(t, check...).Output()
	assert.Truef(t, err != nil && strings.Contains(string(output), "certificate signed by unknown authority"), "%v: %s", err, output)
	image.add(t, "etc/ssl/certs/ca-certificates.crt", read(t, ca), 0o644)
	output, err = image.command(t, check...).Output()
	require.NoError(t, err, string(output))
}

// The guide's command for a pod finds the program, the broker and the operator's credentials.
func TestCommandsRunInThePod(t *testing.T) {
	t.Parallel()
	guide := string(read(t, guides+"failed-messages.md.tmpl"))
	documented := regexp.MustCompile(`(?s)kubectl exec -it deploy/rabbitmq-retry -- (.*?[^\\])\n`).FindStringSubmatch(guide)
	require.NotNil(t, documented, "the guide runs no command in the pod")
	pod := kubernetes(t)
	require.Contains(t, pod.env, cli.EnvURI)

	b, names := brokertest.New(t), pipeline.Names("orders")
	failed := names.FailedQueue()
	b.Request(t, http.MethodPut, b.Path("queues", failed), map[string]any{"durable": true})
	user, password := b.User(t, "", "", "", "^"+regexp.QuoteMeta(failed)+"$")
	broker, err := url.Parse(b.URI)
	require.NoError(t, err)
	image := newImage(t)
	words := strings.Fields(strings.ReplaceAll(documented[1], "\\\n", " "))
	for flag, content := range map[string]string{"username": user, "password": password} {
		at := slices.Index(words, "--"+flag+"-file")
		require.Truef(t, at >= 0 && slices.Contains(pod.mounts, filepath.Dir(words[at+1])), "no mounted --%s-file in %q", flag, words)
		image.add(t, words[at+1], []byte(content), 0o440)
	}

	image.add(t, pod.config(), config(t, b.Vhost), 0o644)

	inside := image.command(t)
	command := exec.CommandContext(t.Context(), "chroot", slices.Concat(
		[]string{fmt.Sprintf("--userspec=%d:%[1]d", imageUser), image.root}, words)...)
	command.Env = append(inside.Env, "PATH="+filepath.Dir(imageProgram), cli.EnvURI+"=amqp://"+broker.Host, cli.EnvConfig+"="+pod.env[cli.EnvConfig])
	output, err := command.CombinedOutput()
	assert.Truef(t, err == nil && strings.Contains(string(output), "0 messages in orders.failed"), "%q: %v\n%s", words, err, output)
}
