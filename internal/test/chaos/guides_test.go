//go:build chaos

package chaos

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

var forNodes = regexp.MustCompile(`(?m)^rabbitmq(ctl|-queues|-diagnostics) `)

// The guides' commands for nodes work as printed, on the first node.
func TestNodeCommandsOfGuides(t *testing.T) { //nolint:paralleltest // stops a node's application
	nodes, programs := cluster(t), t.TempDir()
	script, err := os.ReadFile(filepath.Join(nodes[0].folder, "ctl"))
	require.NoError(t, err)
	for _, program := range []string{"rabbitmqctl", "rabbitmq-queues", "rabbitmq-diagnostics"} {
		text := strings.Replace(string(script), `/rabbitmqctl "$@"`, "/"+program+` "$@"`, 1)
		require.NoError(t, os.WriteFile(filepath.Join(programs, program), []byte(text), 0o700))
	}
	second, err := os.ReadFile(filepath.Join(nodes[1].folder, "ctl"))
	require.NoError(t, err)
	name := regexp.MustCompile(`RABBITMQ_NODENAME=(\S+)`).FindStringSubmatch(string(second))
	require.Len(t, name, 2)
	undo := []string{"delete_user terraform"}
	unlimited := brokertest.New(t).VersionAtLeast("4.0") // before, no delivery limit is -1
	if unlimited {
		undo = append(undo, "clear_policy no-limit")
	}
	t.Cleanup(func() {
		for _, command := range undo {
			assert.NoError(t, nodes[0].ctl(context.WithoutCancel(t.Context()), strings.Fields(command)...))
		}
	})
	guides, err := filepath.Glob("../../../docs/guides/*.md")
	require.NoError(t, err)
	count := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```shell\n([^`]*)```").FindAllStringSubmatch(string(text), -1) {
			if !forNodes.MatchString(block[1]) {
				continue
			}
			if count++; !unlimited && strings.Contains(block[1], `"delivery-limit": -1`) {
				continue
			}
			command := exec.CommandContext(t.Context(), "sh", "-e", "-c", strings.ReplaceAll(block[1], "rabbit@node2", name[1]))
			command.Env = append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
			output, err := command.CombinedOutput()
			require.NoErrorf(t, err, "%s: %s\n%s", filepath.Base(guide), block[1], output)
		}
	}
	require.GreaterOrEqual(t, count, 7)
}
