package plain_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/terraformtest"
)

// The commands of the guide take over a whole state of another provider.
func TestAcc_GuideOnMovingAsPrinted(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../../docs/guides/moving-from-another-provider.md")
	require.NoError(t, err)
	commands := regexp.MustCompile("(?ms)^```shell\n(.*?)^```$").FindAllStringSubmatch(string(content), -1)
	require.Len(t, commands, 1)
	// No registry is asked here.
	script := strings.Replace(commands[0][1], "terraform init", ": terraform init", 1)

	b := brokertest.New(t)
	makeMoving(t, b)
	cli := terraformtest.New(t, terraformtest.BuildProvider(t))
	cli.Write(t, "main.tf", terraformtest.Required)
	cli.Write(t, "terraform.tfstate", stateOfAnother(t, b))
	cli.Write(t, "broker.tf.json", string(asJSON(t, map[string]any{"resource": movingByType(t, b)})))
	programs := t.TempDir()
	require.NoError(t, os.Symlink(os.Getenv("TF_ACC_TERRAFORM_PATH"), filepath.Join(programs, "terraform")))
	command := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script)
	command.Dir, command.Env = cli.Dir, append(slices.Clip(cli.Env), "PATH="+programs+":"+os.Getenv("PATH"))
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	require.Contains(t, string(output), "No changes.")
}

// stateOfAnother is a state file that another provider has written.
func stateOfAnother(t *testing.T, b *brokertest.Broker) string {
	t.Helper()
	text, err := states.ReadFile("testdata/states/cyrilgdn-1.10-on-3.10.json")
	require.NoError(t, err)
	var all []stored
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(text), movedVhost, b.Vhost)), &all))
	host := "registry.terraform.io"
	if other := os.Getenv("TF_ACC_PROVIDER_HOST"); other != "" {
		host = other
	}
	var resources []any
	for _, s := range all {
		if _, has := moving(t, b)[s.Type+"."+s.Name]; !has {
			continue
		}
		resources = append(resources, map[string]any{
			"mode": "managed", "type": s.Type, "name": s.Name, "provider": `provider["` + host + `/cyrilgdn/rabbitmq"]`,
			"instances": []any{map[string]any{"schema_version": s.Version, "attributes": s.Attributes}},
		})
	}
	return string(asJSON(t, map[string]any{
		"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "other", "resources": resources,
	}))
}

// movingByType are the configurations of [moving], by type and name.
func movingByType(t *testing.T, b *brokertest.Broker) map[string]map[string]any {
	t.Helper()
	byType := map[string]map[string]any{}
	for address, config := range moving(t, b) {
		kind, name, _ := strings.Cut(address, ".")
		if byType[kind] == nil {
			byType[kind] = map[string]any{}
		}
		byType[kind][name] = config
	}
	return byType
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}
