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
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// imageUser is the user of the Dockerfile.
const imageUser = 65532

// The command lines of the examples work where there is nothing but what the image holds and what is
// mounted, and nothing can be written.
func TestExamplesRunInAnEmptyImage(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	binary := terraformtest.BuildSidecar(t)
	for name, deployment := range map[string]deployment{"Kubernetes": kubernetes(t), "Compose": compose(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, names := brokertest.New(t), pipeline.Names("orders")
			stage(t, b, names)
			permissions := pipeline.WorkerPermissions(names)
			user, password := b.User(t, "", permissions.Configure, permissions.Write, permissions.Read)

			image := image{root: t.TempDir()}
			image.add(t, "rabbitmq-retry", read(t, binary), 0o755)
			image.add(t, deployment.flag("config"), config(t, b.Vhost, names), 0o644)
			image.add(t, deployment.flag("username-file"), []byte(user), 0o440)
			image.add(t, deployment.flag("password-file"), []byte(password+"\n"), 0o440)

			address := freeAddress(t)
			broker, err := url.Parse(b.URI)
			if err != nil {
				t.Fatal(err)
			}
			args := slices.Concat(deployment.args, []string{"--uri=amqp://" + broker.Host, "--listen=" + address})
			worker := image.command(t, slices.DeleteFunc(args, func(arg string) bool {
				return arg == "--uri="+deployment.flag("uri") || arg == "--listen="+deployment.flag("listen")
			})...)
			var log bytes.Buffer
			worker.Stderr = &log
			if err := worker.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = worker.Wait() // the test's context has ended it, if nothing else did
				if t.Failed() {
					t.Logf("the worker's log:\n%s", &log)
				}
			})
			for _, path := range []string{"/readyz", "/healthz", "/metrics"} {
				brokertest.Eventually(t, time.Minute, func() error { return answers("http://" + address + path) })
			}
			if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := worker.Wait(); err != nil {
				t.Errorf("SIGTERM: %v", err)
			}
		})
	}
}

// stage makes what the worker needs to consume.
func stage(t *testing.T, b *brokertest.Broker, names pipeline.Names) {
	t.Helper()
	b.Request(t, http.MethodPut, b.Path("queues", names.Inbox()), map[string]any{"durable": true})
	for _, exchange := range names.WorkerExchanges() {
		b.Request(t, http.MethodPut, b.Path("exchanges", exchange), map[string]any{"type": "direct", "durable": true})
	}
}

func config(t *testing.T, vhost string, names pipeline.Names) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{"pipelines": []pipeline.Worker{{
		Version: pipeline.WorkerVersion, Name: string(names), Vhost: vhost, Delays: []string{"5s"}, MaxAttempts: 2, RetryOn: []string{"rejected"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// image is a root file system that its user can read at most.
type image struct{ root string }

func (i image) add(t *testing.T, path string, content []byte, mode os.FileMode) {
	t.Helper()
	path = filepath.Join(i.root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, 0, imageUser); err != nil {
		t.Fatal(err)
	}
}

// command is the entry point of the image, run as its user.
func (i image) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	// A directory of the test may be closed to others.
	if err := os.Chmod(i.root, 0o755); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "/rabbitmq-retry", args...)
	command.Err = nil // of having looked for the program outside
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
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().String()
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The certificate authorities are those that the Dockerfile copies to where Go looks for them.
func TestImageTrustsTheCertificatesThatItHolds(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("chroot needs root")
	}
	b, names := brokertest.New(t), pipeline.Names("orders")
	stage(t, b, names)
	server, ca := brokertest.ServerTLS(t)
	image := image{root: t.TempDir()}
	image.add(t, "rabbitmq-retry", read(t, terraformtest.BuildSidecar(t)), 0o755)
	image.add(t, "pipelines.json", config(t, b.Vhost, names), 0o644)
	image.add(t, "uri", []byte(b.ThroughTLS(t, server)), 0o440)

	check := []string{"worker", "--check", "--config=/pipelines.json", "--uri-file=/uri"}
	if output, err := image.command(t, check...).Output(); err == nil || !strings.Contains(string(output), "certificate signed by unknown authority") {
		t.Errorf("without certificates: %v: %s", err, output)
	}
	image.add(t, "etc/ssl/certs/ca-certificates.crt", read(t, ca), 0o644)
	if output, err := image.command(t, check...).Output(); err != nil {
		t.Errorf("with certificates: %v: %s", err, output)
	}
}

// The image has what the examples rely on, and is built with a compiler that is new enough.
func TestDockerfileFits(t *testing.T) {
	t.Parallel()
	language := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(string(read(t, "../../go.mod")))
	if language == nil {
		t.Fatal("go.mod does not say which Go it needs")
	}
	dockerfile := string(read(t, "../../Dockerfile"))
	for _, part := range []string{
		" golang:" + language[1] + " AS build\n", "\nFROM scratch\n", fmt.Sprintf("\nUSER %d:%d\n", imageUser, imageUser), "\nENTRYPOINT [\"/rabbitmq-retry\"]\n",
	} {
		if !strings.Contains(dockerfile, part) {
			t.Errorf("the Dockerfile lacks %q", part)
		}
	}
}
