//go:build chaos

package chaos

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// node is one of those that scripts/with-cluster has started.
type node struct {
	number int
	folder string
	// The listeners, as host:port.
	amqp, management string
}

func (n *node) String() string { return fmt.Sprintf("node %d", n.number) }

// cluster finds the nodes in the environment.
func cluster(t *testing.T) []*node {
	t.Helper()
	folder := os.Getenv("RABBITMQ_CLUSTER")
	uris, endpoints := strings.Fields(os.Getenv("RABBITMQ_URIS")), strings.Fields(os.Getenv("RABBITMQ_ENDPOINTS"))
	if folder == "" || len(uris) != len(endpoints) {
		t.Fatal("no cluster: run `make chaos`, or scripts/with-cluster -- go test -tags=chaos ./internal/chaos")
	}
	var nodes []*node
	for i := range uris {
		nodes = append(nodes, &node{
			number: i + 1,
			folder: filepath.Join(folder, strconv.Itoa(i+1)),
			amqp:   host(t, uris[i]), management: host(t, endpoints[i]),
		})
	}
	return nodes
}

func host(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	require.NoError(t, err)
	return u.Host
}

// kill ends the node's processes without warning.
func (n *node) kill() error { return n.signal(syscall.SIGKILL) }

// freeze stops the node's processes until they are thawed. Their connections stay open.
func (n *node) freeze() error { return n.signal(syscall.SIGSTOP) }

func (n *node) thaw() error { return n.signal(syscall.SIGCONT) }

func (n *node) signal(s syscall.Signal) error {
	content, err := os.ReadFile(filepath.Join(n.folder, "group"))
	if err != nil {
		return err
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(content)))
	if err != nil {
		return err
	}
	return syscall.Kill(-group, s)
}

// start waits until the node's processes are gone, and begins to start it again.
func (n *node) start() error {
	return os.WriteFile(filepath.Join(n.folder, "start"), []byte("\n"), 0)
}

// ctl runs rabbitmqctl for the node.
func (n *node) ctl(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, filepath.Join(n.folder, "ctl"), args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: rabbitmqctl %s: %w\n%s", n, strings.Join(args, " "), err, output)
	}
	return nil
}
