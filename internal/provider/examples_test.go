package provider_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// Every example can be planned with the provider that users get. Import blocks are removed, since they need existing objects.
// If an example needs other providers, only the values from our resources remain.
func TestAcc_ExamplesCanBePlanned(t *testing.T) {
	t.Parallel()
	provider := terraformtest.BuildProvider(t)
	secrets := []string{
		"TF_VAR_password=secret", `TF_VAR_passwords={publisher="a", consumer="b", sidecar="c", operator="d"}`,
		`TF_VAR_uris={source=["amqp://"], destination=["amqp://"]}`, "TF_VAR_north_uri=amqp://",
	}
	for _, example := range rootModules(t) {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			tf := terraformtest.New(t, provider, secrets...)
			copyWithoutImports(t, filepath.Join("../../examples", example), tf.Dir)
			b := brokertest.WithoutVhost(t)
			for _, file := range sourcesOf(t, tf.Dir) {
				content, err := os.ReadFile(file)
				require.NoError(t, err)
				for _, engine := range regexp.MustCompile(`(?m)^ *engine *= "(\w+)"`).FindAllStringSubmatch(string(content), -1) {
					b.Needs(t, brokertest.Engine(engine[1]))
				}
			}
			replaceOtherProviders(t, tf)
			tf.Run(t, "get")
			tf.Run(t, "plan", "-input=false", "-lock=false")
		})
	}
}

// Every block of a guide is part of an example, or valid with the provider that users get.
func TestAcc_BlocksOfGuidesAreValid(t *testing.T) {
	t.Parallel()
	provider := terraformtest.BuildProvider(t)
	guides, err := filepath.Glob(root + "docs/guides/*.md")
	require.NoError(t, err)
	oneLine := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	examples, checked := "", 0
	for _, file := range sourcesOf(t, root+"examples") {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		examples += oneLine(string(content)) + "\n"
	}
	for _, guide := range guides {
		content, err := os.ReadFile(guide)
		require.NoError(t, err)
		for i, block := range regexp.MustCompile("(?ms)^ *```terraform\n(.*?)^ *```$").FindAllSubmatch(content, -1) {
			config := string(block[1])
			if strings.Contains(examples, oneLine(config)) || strings.Contains(config, "cyrilgdn/") { // tests cannot install this one
				continue
			}
			checked++
			t.Run(fmt.Sprint(filepath.Base(guide), " ", i+1), func(t *testing.T) {
				t.Parallel()
				tf := terraformtest.New(t, provider)
				if !strings.Contains(config, "required_providers") {
					tf.Write(t, "versions.tf", terraformtest.Required)
				}
				tf.Write(t, "main.tf", config)
				tf.Run(t, "validate")
			})
		}
	}
	require.GreaterOrEqual(t, checked, 7)
}

// sourcesOf are the files of Terraform below a folder.
func sourcesOf(t *testing.T, folder string) (files []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if ext := filepath.Ext(path); ext == ".tf" || ext == ".hcl" {
			files = append(files, path)
		}
		return err
	}))
	return files
}

// rootModules lists the example folders that name their provider.
func rootModules(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, folders := range []string{"*", "consumers/*", "resources/*", "data-sources/*"} {
		deeper, err := filepath.Glob("../../examples/" + folders + "/*.tf")
		require.NoError(t, err)
		files = append(files, deeper...)
	}
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		if bytes.Contains(content, []byte("required_providers")) {
			found = append(found, strings.TrimPrefix(filepath.Dir(file), "../../examples/"))
		}
	}
	if len(found) < 5 {
		t.Fatalf("only %q were found", found)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func copyWithoutImports(t *testing.T, example, dir string) {
	t.Helper()
	require.NoError(t, os.CopyFS(dir, os.DirFS(example)))
	files, err := filepath.Glob(filepath.Join(dir, "import*"))
	require.NoError(t, err)
	for _, file := range files {
		require.NoError(t, os.Remove(file))
	}
}

// replaceOtherProviders replaces files that need another provider by outputs of the values that they take from our resources.
// Such an example has its providers in versions.tf, and our resources in separate files.
func replaceOtherProviders(t *testing.T, tf *terraformtest.CLI) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(tf.Dir, "versions.tf")); err != nil {
		return
	}
	tf.Write(t, "versions.tf", terraformtest.Required)
	files, err := filepath.Glob(filepath.Join(tf.Dir, "*.tf"))
	require.NoError(t, err)
	resources := regexp.MustCompile(`(?m)^resource "(\w+)"`)
	references := regexp.MustCompile(`rabbitmq_retry_\w+\.\w+\.[\w.]+`)
	taken := 0
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		match := resources.FindSubmatch(content)
		if match == nil || strings.HasPrefix(string(match[1]), "rabbitmq_retry_") {
			continue
		}
		outputs := ""
		for _, reference := range references.FindAllString(string(content), -1) {
			outputs += fmt.Sprintf("output \"taken_%d\" {\n  value = %s\n}\n", taken, reference)
			taken++
		}
		tf.Write(t, filepath.Base(file), outputs)
	}
	if taken == 0 {
		t.Error("it needs other providers, but uses nothing of ours")
	}
}

// The import block and the import command of each resource's page find what the page's example has made.
func TestAcc_ImportsOfPagesAsPrinted(t *testing.T) {
	t.Parallel()
	provider := terraformtest.BuildProvider(t)
	plugins := map[string]string{"shovel": "rabbitmq_shovel", "federation_upstream": "rabbitmq_federation", "parameter": "rabbitmq_federation"}
	pages, err := filepath.Glob(root + "docs/resources/*.md")
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(pages), 15)
	for _, page := range pages {
		kind := strings.TrimSuffix(filepath.Base(page), ".md")
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := brokertest.New(t)
			if plugin := plugins[kind]; plugin != "" {
				b.Needs(t, brokertest.Plugin(plugin))
			}
			content, err := os.ReadFile(page)
			require.NoError(t, err)
			// Everything is in the test's vhost, and what is in no vhost has a name of the test.
			global := b.Vhost + "-global"
			here := strings.NewReplacer(`= "shop"`, `= "`+global+`"`, `= "retry"`, `= "`+global+`"`, "/shop", "/"+global, " shop\n", " "+global+"\n",
				" retry\n", " "+global+"\n", `"/" =`, `"`+b.Vhost+`" =`, "%2F", url.PathEscape(b.Vhost))
			blocks := map[string]string{}
			for _, block := range regexp.MustCompile("(?ms)^```(terraform\n(?:import)?|shell\n)(.*?)^```$").FindAllStringSubmatch(string(content), -1) {
				if blocks[block[1]] == "" {
					blocks[block[1]] = here.Replace(block[2])
				}
			}
			for _, objects := range []string{"users", "vhosts"} {
				t.Cleanup(func() { b.Request(t, http.MethodDelete, "/api/"+objects+"/"+url.PathEscape(global), nil) })
			}
			if strings.HasSuffix(kind, "permissions") {
				b.Call(t, http.MethodPut, "/api/users/"+url.PathEscape(global), map[string]any{"password_hash": "", "tags": ""}, nil)
				b.Call(t, http.MethodPut, b.Path("exchanges", "orders"), map[string]any{"type": "topic", "durable": true}, nil)
			}
			tf := terraformtest.New(t, provider, "TF_VAR_password=secret", `TF_VAR_uris={source=["amqp://"], destination=["amqp://"]}`,
				"TF_VAR_north_uri=amqp://")
			tf.Write(t, "versions.tf", terraformtest.Required)
			inVhost := regexp.MustCompile(`(?m)^resource "rabbitmq_[^uv].*`) // all but users and vhosts
			tf.Write(t, "main.tf", inVhost.ReplaceAllString(blocks["terraform\n"], "$0\n  vhost = \""+b.Vhost+`"`))
			tf.Run(t, "apply", "-auto-approve", "-input=false")
			address := regexp.MustCompile(`to = (\S+)`).FindStringSubmatch(blocks["terraform\nimport"])
			require.Len(t, address, 2)
			tf.Run(t, "state", "rm", address[1])

			tf.Write(t, "import.tf", "import"+blocks["terraform\nimport"])
			require.Contains(t, tf.Run(t, "plan", "-input=false", "-no-color"), "Plan: 1 to import, ")
			require.NoError(t, os.Remove(filepath.Join(tf.Dir, "import.tf")))
			require.Contains(t, tf.Shell(t, blocks["shell\n"]), "Import successful!")
		})
	}
}

// The guide's import block and command write the configuration of a pipeline that exists, and the next plan is only the import.
func TestAcc_GeneratedConfigurationAsPrinted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	content, err := os.ReadFile(root + "docs/guides/changing.md")
	require.NoError(t, err)
	printed := regexp.MustCompile("(?ms)^```terraform\n(import .*?)^```\n\n```shell\n(.*?)^```$").FindStringSubmatch(string(content))
	require.Len(t, printed, 3)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	tf.Write(t, "versions.tf", terraformtest.Required)
	tf.Write(t, "main.tf", `resource "rabbitmq_retry_pipeline" "orders" {
  name        = "orders"
  vhost       = "`+b.Vhost+`"
  delays      = ["1s"]
  work_queues = { "orders.created" = { declare = true } }
}`)
	tf.Run(t, "apply", "-auto-approve", "-input=false")
	tf.Run(t, "state", "rm", "rabbitmq_retry_pipeline.orders")

	tf.Write(t, "main.tf", strings.ReplaceAll(printed[1], "%2F", url.PathEscape(b.Vhost)))
	if _, err := tf.Try(t.Context(), strings.Fields(printed[2])[1:]...); err != nil { // OpenTofu, which leaves out these quotes
		content, read := os.ReadFile(filepath.Join(tf.Dir, "orders.tf"))
		require.NoError(t, read)
		require.Contains(t, string(content), " orders.created ", err)
		tf.Write(t, "orders.tf", strings.ReplaceAll(string(content), " orders.created ", ` "orders.created" `))
	}
	require.Contains(t, tf.Run(t, "plan", "-input=false", "-no-color"), "Plan: 1 to import, 0 to add, 0 to change, 0 to destroy.")
}

// The example's check block warns only of a fault, and gives a remedy. It is no change.
func TestAcc_CheckBlock(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "work", "classic", map[string]any{"x-dead-letter-exchange": "dead"})
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	for _, name := range []string{"providers.tf", "data-source.tf"} {
		content, err := os.ReadFile(filepath.Join("../../examples/data-sources/rabbitmq_dead_letter_audit", name))
		require.NoError(t, err)
		tf.Write(t, name, strings.ReplaceAll(string(content), `vhost = "/"`, `vhost = "`+b.Vhost+`"`))
	}
	plan := func() string {
		return inOneLine(tf.Run(t, "plan", "-detailed-exitcode", "-input=false", "-lock=false", "-no-color"))
	}

	output := plan()
	for _, want := range []string{"Check block assertion failed", `queue work: The dead-letter exchange "dead" of queue "work" does not exist.`, "(dead-letter-exchange-missing)"} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is not in %s", want, output)
		}
	}

	b.Call(t, http.MethodPut, b.Path("exchanges", "dead"), map[string]any{"type": "fanout", "durable": true}, nil)
	b.DeclareQueue(t, "parked", "classic", nil)
	b.Call(t, http.MethodPost, b.Path("bindings", "e", "dead", "q", "parked"), map[string]any{}, nil)
	if output := plan(); strings.Contains(output, "Check block") || !strings.Contains(output, "No changes.") {
		t.Errorf("after the repair: %s", output)
	}

	b.Create(t, topology.Topology{
		Exchanges: map[string]topology.Exchange{
			"orders.return": {Type: "direct", Arguments: topology.Arguments{"alternate-exchange": "orders.dlx"}}, "orders.dlx": {Type: "direct"},
		},
		Queues: map[string]topology.Queue{"orders.inbox": {Type: topology.Classic}, "orders.failed": {Type: topology.Classic}},
	})
	require.NotContains(t, plan(), "wait for a sidecar")
	b.Publish(t, "", "orders.inbox", amqp.Publishing{Body: []byte("1")})
	brokertest.Eventually(t, func() error {
		if output := plan(); !strings.Contains(output, "Messages wait for a sidecar. Deploy the current worker.json.") {
			return errors.New(output)
		}
		return nil
	})
}
