package plain_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// guide has the code blocks of a guide, by language.
func guide(t *testing.T, name string) map[string][]string {
	t.Helper()
	content, err := os.ReadFile("../../../docs/guides/" + name + ".md")
	require.NoError(t, err)
	blocks := map[string][]string{}
	for _, found := range regexp.MustCompile("(?ms)^ *```([a-z]+)\n(.*?)^ *```$").FindAllStringSubmatch(string(content), -1) {
		blocks[found[1]] = append(blocks[found[1]], found[2])
	}
	return blocks
}

func guideOnMoving(t *testing.T) map[string][]string {
	t.Helper()
	return guide(t, "moving-from-another-provider")
}

const another = "cyrilgdn/rabbitmq"

// takingOver is a CLI in a directory with the state of another provider in one module. This provider also stands in for the other one,
// which tests cannot install.
func takingOver(t *testing.T, b *brokertest.Broker, inModule string) *terraformtest.CLI {
	t.Helper()
	provider := terraformtest.BuildProvider(t)
	cli := terraformtest.New(t, "")
	cli.Write(t, "cli.rc", fmt.Sprintf("provider_installation {\n dev_overrides {\n %q = %q\n %q = %q\n }\n direct {}\n}\n",
		registry.Source, provider, another, provider))
	cli.Env = append(cli.Env, "TF_CLI_CONFIG_FILE="+filepath.Join(cli.Dir, "cli.rc"))
	cli.Write(t, "terraform.tfstate", stateOfAnother(t, b, inModule))
	return cli
}

// runs runs commands of the guide. No registry is asked here.
func runs(t *testing.T, cli *terraformtest.CLI, commands string) {
	t.Helper()
	require.Contains(t, cli.Shell(t, strings.Replace(commands, "terraform init", ": terraform init", 1)), "No changes.")
}

func TestAcc_GuideOnMovingAsPrinted(t *testing.T) {
	t.Parallel()
	guide := guideOnMoving(t)
	require.Len(t, guide["shell"], 4)
	b := brokertest.New(t)
	makeMoving(t, b)
	resources := byType(moving(t, b))
	plan := func(t *testing.T, cli *terraformtest.CLI) {
		t.Helper()
		printed, code := cli.Exit(t, "plan", "-detailed-exitcode", "-input=false")
		require.Zero(t, code, printed)
	}
	t.Run("a whole state, and back", func(t *testing.T) {
		t.Parallel()
		cli := takingOver(t, b, "")
		cli.Write(t, "broker.tf.json", string(asJSON(t, map[string]any{"resource": resources})))
		required := guide["terraform"][0]
		cli.Write(t, "main.tf", required)
		runs(t, cli, guide["shell"][0])
		require.Equal(t, map[string]bool{registry.Source: true}, providersIn(t, cli))
		cli.Write(t, "main.tf", strings.Replace(required, registry.Source, another, 1))
		runs(t, cli, guide["shell"][3])
		require.Equal(t, map[string]bool{another: true}, providersIn(t, cli))
	})
	t.Run("one resource after another", func(t *testing.T) {
		t.Parallel()
		cli := takingOver(t, b, "")
		cli.Write(t, "main.tf", guide["terraform"][1])
		mixed := moving(t, b)
		for address, config := range mixed {
			if !strings.HasPrefix(address, "rabbitmq_exchange.") {
				config["provider"] = "old"
			}
		}
		cli.Write(t, "broker.tf.json", string(asJSON(t, map[string]any{"resource": byType(mixed)})))
		plan(t, cli)
		cli.Run(t, "apply", "-auto-approve", "-input=false")
		require.Equal(t, map[string]bool{registry.Source: true, another: true}, providersIn(t, cli))
		cli.Write(t, "broker.tf.json", string(asJSON(t, map[string]any{"resource": resources})))
		plan(t, cli)
	})
	t.Run("a module of others", func(t *testing.T) {
		t.Parallel()
		cli := takingOver(t, b, "module.theirs")
		required := guide["terraform"][0]
		cli.Write(t, "main.tf", required+"module \"theirs\" {\n  source = \"./theirs\"\n}\n")
		require.NoError(t, os.Mkdir(filepath.Join(cli.Dir, "theirs"), 0o700))
		cli.Write(t, "theirs/broker.tf.json", string(asJSON(t, map[string]any{"resource": resources})))
		for _, source := range []string{another, registry.Source} {
			cli.Write(t, "theirs/main.tf", strings.Replace(required, registry.Source, source, 1))
			cli.Run(t, "get")
			plan(t, cli)
		}
	})
}

// The guide's commands write configuration that only imports.
func TestAcc_AdoptOfTheGuideAsPrinted(t *testing.T) {
	t.Parallel()
	b := brokertest.WithQueues(t, "orders", "mails")
	cli := terraformtest.New(t, terraformtest.BuildProvider(t), "TF_CLI_ARGS_plan=-no-color")
	commands := strings.NewReplacer("--vhost /", "--vhost "+b.Vhost, " init\n", " version\n").Replace(guideOnMoving(t)["shell"][1])
	printed := cli.Shell(t, "rabbitmq-retry() { "+terraformtest.BuildSidecar(t)+" \"$@\"; }\n"+commands)
	require.Contains(t, printed, "Plan: 2 to import, 0 to add, 0 to change, 0 to destroy.")
}

// awaitConsumers waits until the broker has counted so many consumers of a queue.
func awaitConsumers(t *testing.T, b *brokertest.Broker, queue string, want int) {
	t.Helper()
	brokertest.Eventually(t, func() error {
		var live struct{ Consumers int }
		if b.Call(t, http.MethodGet, b.Path("queues", queue), nil, &live); live.Consumers != want {
			return fmt.Errorf("%d consumers of %q", live.Consumers, queue)
		}
		return nil
	})
}

// Both ways of the guide on retries by hand end with a pipeline, and an empty plan.
func TestAcc_RetriesByHandOfTheGuideAsPrinted(t *testing.T) {
	t.Parallel()
	hcl, shell := guide(t, "moving-from-retries-by-hand")["terraform"], guide(t, "moving-from-retries-by-hand")["shell"]
	require.Len(t, hcl, 4)
	start := func(t *testing.T) (b *brokertest.Broker, cli *terraformtest.CLI, in func(text string) string) {
		t.Helper()
		b, cli = brokertest.New(t), terraformtest.New(t, terraformtest.BuildProvider(t), "TF_CLI_ARGS_plan=-no-color", "TF_CLI_ARGS_apply=-auto-approve -no-color")
		in = func(text string) string {
			return regexp.MustCompile(`(?m)^( *resource .*{)$`).ReplaceAllString(text, "$1\nvhost = \""+b.Vhost+"\"")
		}
		return b, cli, in
	}
	t.Run("by hand", func(t *testing.T) {
		t.Parallel()
		_, cli, in := start(t)
		blocks := regexp.MustCompile(`(?ms)^resource .*?^}$`).FindAllString(hcl[0], -1)
		require.Len(t, blocks, 4)
		for _, step := range [][]string{
			{hcl[0]},
			{hcl[0], hcl[1]},
			{hcl[0], hcl[2]},
			{blocks[0], blocks[1], blocks[2], hcl[2], hcl[3]},
			{blocks[0], hcl[2], hcl[3]},
		} {
			cli.Write(t, "main.tf", terraformtest.Required+in(strings.Join(step, "\n")))
			cli.Run(t, "apply")
		}
		printed, code := cli.Exit(t, "plan", "-detailed-exitcode")
		require.Zero(t, code, printed)
	})
	t.Run("by the command", func(t *testing.T) {
		t.Parallel()
		b, cli, in := start(t)
		cli.Write(t, "main.tf", terraformtest.Required+in(hcl[0]))
		cli.Run(t, "apply")
		cli.Shell(t, "rm main.tf terraform.tfstate*")
		channel, _ := b.Consume(t, "orders", 1)
		awaitConsumers(t, b, "orders", 1)
		run := func(commands string) string {
			text := strings.NewReplacer("--vhost /", "--vhost "+b.Vhost, " init\n", " version\n").Replace(commands)
			return cli.Shell(t, "rabbitmq-retry() { "+terraformtest.BuildSidecar(t)+" \"$@\"; }\n"+text)
		}
		require.Contains(t, run(shell[0]), "Plan: 4 to import, 0 to add, 0 to change, 0 to destroy.")
		cli.Shell(t, "terraform -chdir=infra apply")
		_, code := cli.Exit(t, "-chdir=adopted/step-1", "validate")
		require.NotZero(t, code)
		cli.Shell(t, "sed -i 's/FILL_IN/4/' adopted/decide.tf")
		for step := 1; step <= 4; step++ {
			if step == 4 {
				require.NoError(t, channel.Close())
				awaitConsumers(t, b, "orders", 0)
			}
			run(strings.Replace(shell[1], "step-1", fmt.Sprintf("step-%d", step), 1))
		}
		printed := cli.Shell(t, "terraform -chdir=infra plan")
		require.Contains(t, printed, "No changes.")
	})
}

// The guide's list block and command write configuration that only imports.
func TestAcc_QueryOfTheGuideAsPrinted(t *testing.T) {
	t.Parallel()
	guide := guideOnMoving(t)
	b := brokertest.New(t)
	cli := terraformtest.New(t, terraformtest.BuildProvider(t))
	if !strings.Contains(cli.Run(t, "-help"), "\n  query ") {
		t.Skip("this CLI has no query") //nolint:forbidigo // not of the broker
	}
	b.DeclareQueue(t, "orders", "quorum", map[string]any{"x-max-length": 100})
	b.DeclareQueue(t, "mails", "classic", nil)
	cli.Write(t, "main.tf", terraformtest.Required)
	cli.Write(t, "broker.tfquery.hcl", strings.Replace(guide["terraform"][3], `"/"`, `"`+b.Vhost+`"`, 1))
	cli.Shell(t, guide["shell"][2])
	require.Contains(t, cli.Run(t, "plan", "-input=false", "-no-color"), "Plan: 2 to import, 0 to add, 0 to change, 0 to destroy.")
}

// A state of another provider lacks attributes until it is refreshed. An apply without a refresh loses nothing on the broker.
func TestAcc_StateOfAnotherIsAppliedWithoutARefresh(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	makeMoving(t, b)
	cli := takingOver(t, b, "")
	cli.Write(t, "main.tf", guideOnMoving(t)["terraform"][0])
	cli.Write(t, "broker.tf.json", string(asJSON(t, map[string]any{"resource": byType(moving(t, b))})))
	cli.Run(t, "state", "replace-provider", "-auto-approve", another, registry.Source)
	cli.Run(t, "apply", "-refresh=false", "-auto-approve", "-input=false")
	printed, code := cli.Exit(t, "plan", "-detailed-exitcode", "-input=false")
	require.Zero(t, code, printed)
}

// providersIn are the sources of the providers in a state.
func providersIn(t *testing.T, cli *terraformtest.CLI) map[string]bool {
	t.Helper()
	var state struct{ Resources []struct{ Provider string } }
	require.NoError(t, json.Unmarshal([]byte(cli.Run(t, "state", "pull")), &state))
	found := map[string]bool{}
	for _, r := range state.Resources {
		_, source, _ := strings.Cut(strings.TrimSuffix(r.Provider, `"]`), "/")
		found[source] = true
	}
	return found
}

// stateOfAnother is a state file that another provider has written.
func stateOfAnother(t *testing.T, b *brokertest.Broker, module string) string {
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
		stored := map[string]any{
			"mode": "managed", "type": s.Type, "name": s.Name, "provider": fmt.Sprintf("provider[%q]", host+"/"+another),
			"instances": []any{map[string]any{"schema_version": s.Version, "attributes": s.Attributes}},
		}
		if module != "" {
			stored["module"] = module
		}
		resources = append(resources, stored)
	}
	return string(asJSON(t, map[string]any{
		"version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "other", "resources": resources,
	}))
}

// byType groups the configurations of [moving] by type and name.
func byType(all map[string]map[string]any) map[string]map[string]any {
	grouped := map[string]map[string]any{}
	for address, config := range all {
		kind, name, _ := strings.Cut(address, ".")
		if grouped[kind] == nil {
			grouped[kind] = map[string]any{}
		}
		grouped[kind][name] = config
	}
	return grouped
}

func asJSON(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return text
}
