package brokertest

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The workflow and GNUmakefile have what the lists say.
func TestPublicWorkflow(t *testing.T) {
	t.Parallel()
	read := func(file, pattern string) string {
		content, err := os.ReadFile("../../../" + file)
		require.NoError(t, err)
		found := regexp.MustCompile(pattern).FindSubmatch(content)
		require.NotNil(t, found, file)
		return string(found[1])
	}
	require.Equal(t, `"`+strings.Join(publicReleases, `", "`)+`"`, read(".github/workflows/test.yml", `rabbitmq: \[(.*)\]`))
	require.Equal(t, strings.Join(publicPlugins, " "), read("GNUmakefile", `plugins *= .*foreach plugin,([a-z0-9_ ]*),`))
	require.Contains(t, read(".github/workflows/test.yml", `apt-get install (.*) # promtool`), "prometheus")
}

func TestNeedsThatNoPublicJobHas(t *testing.T) {
	t.Parallel()
	for want, needs := range map[bool][]Need{
		true:  {Release(">= 4.3.1"), Plugin("rabbitmq_shovel")},
		false: {Release(">= 3.13"), Release("< 3.13")},
	} {
		require.Equal(t, want, runsInPublic(needs))
	}
	require.False(t, runsInPublic([]Need{Plugin("rabbitmq_stomp")}))
	require.False(t, runsInPublic([]Need{Release(">= 5")}))
}
