package provider_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const root = "../../"

// publicNames is the list of all names that users write or read, and that later releases keep.
const publicNames = root + "design/public-names.txt"

// The list has exactly the product's public names, so that a change of a name appears in a diff.
func TestPublicNames(t *testing.T) {
	t.Parallel()
	var list bytes.Buffer
	for _, part := range []struct {
		title string
		names []string
	}{
		{"Terraform schema", schemaNames(t)},
		{"Commands and flags", commandNames(t)},
		{"Exit codes", constants(t, regexp.MustCompile(`^exit[A-Z]`), "cmd/rabbitmq-retry")},
		{"Environment variables", matches(t, `"(RABBITMQ_[A-Z_]+)"`, sources(t, "cmd", "internal")...)},
		{"Metrics", matches(t, "(?m)^\\| `(rabbitmq_retry_[^|]+\\| [^|]+ \\| [^|]+) \\|", "templates/guides/metrics-and-alerts.md.tmpl")},
		{"Alerts and rules", matches(t, `(?m)^ *- (?:alert|record): (\S+)$`, "examples/observability/alerts.yml")},
		{"Headers", constants(t, regexp.MustCompile("^Header[A-Z]"), "internal/deadletter", "internal/delaying", "internal/failed")},
		{"Values of headers and flags", constants(t, regexp.MustCompile("^(Reason|Detour|Hint)[A-Z]|^(asID|asJSONL|Table|JSON|By[A-Z].*)$"),
			"internal/cli", "internal/deadletter", "internal/delaying", "internal/failed", "internal/failed/command", "internal/pipeline")},
		{"JSON keys", jsonKeys(t, "cmd/rabbitmq-retry", "internal/audit", "internal/delayed", "internal/failed", "internal/failed/command", "internal/failed/operation",
			"internal/metrics", "internal/pipeline", "internal/probe", "internal/topology", "internal/workerconfig")},
		{"Keys of exported messages", matches(t, `"([a-z0-9_]+)": +&l\.`, "internal/failed/file/line.go")},
		{"Rules of the audit", audit.Rules()},
		{"Objects on the broker", objectNames()},
	} {
		if len(part.names) == 0 {
			t.Errorf("no %s", part.title)
		}
		fmt.Fprintf(&list, "# %s\n\n%s\n\n", part.title, strings.Join(part.names, "\n"))
	}
	golden.Check(t, publicNames, strings.TrimSuffix(list.String(), "\n"))
}

// schemaNames are the attributes of the provider, its resources and data sources with their types, and its functions.
func schemaNames(t *testing.T) (names []string) {
	t.Helper()
	server := newServer(t)
	schema := server.schema
	add := func(kind string, schemas map[string]*tfprotov6.Schema) {
		for _, name := range slices.Sorted(maps.Keys(schemas)) {
			names = append(names, attributeNames(kind+" "+name, schemas[name].Block.Attributes)...)
		}
	}
	add("provider", map[string]*tfprotov6.Schema{"rabbitmq": schema.Provider})
	add("resource", schema.ResourceSchemas)
	add("data", schema.DataSourceSchemas)
	add("list", schema.ListResourceSchemas)
	for _, name := range slices.Sorted(maps.Keys(schema.Functions)) {
		var parameters []string
		for _, p := range schema.Functions[name].Parameters {
			parameters = append(parameters, p.Name)
		}
		names = append(names, fmt.Sprintf("function %s(%s)", name, strings.Join(parameters, ", ")))
	}
	identities, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	require.NoError(t, err)
	for _, name := range slices.Sorted(maps.Keys(identities.IdentitySchemas)) {
		for _, a := range identities.IdentitySchemas[name].IdentityAttributes {
			names = append(names, fmt.Sprintf("identity %s.%s %s", name, a.Name, typeName(a.Type)))
		}
	}
	return names
}

func attributeNames(of string, attributes []*tfprotov6.SchemaAttribute) (names []string) {
	for _, a := range attributes {
		name := of + "." + a.Name
		if a.NestedType == nil {
			names = append(names, name+" "+typeName(a.Type))
			continue
		}
		names = append(names, name+" "+strings.ToLower(a.NestedType.Nesting.String()))
		names = append(names, attributeNames(name, a.NestedType.Attributes)...)
	}
	return names
}

func typeName(of tftypes.Type) string {
	return strings.ToLower(strings.ReplaceAll(of.String(), "tftypes.", ""))
}

// commandNames are the sidecar's commands, with the flags that their help shows.
func commandNames(t *testing.T) (names []string) {
	t.Helper()
	binary := terraformtest.BuildSidecar(t)
	flags, commands := regexp.MustCompile(`(?m)^ +(-\w, )?--([a-z-]+)`), regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`)
	var visit func(command ...string)
	visit = func(command ...string) {
		help, err := exec.CommandContext(t.Context(), binary, append(command, "--help")...).Output()
		require.NoErrorf(t, err, "%v", command)
		_, listed, _ := strings.Cut(string(help), "Usage:")
		name := strings.Join(append([]string{"rabbitmq-retry"}, command...), " ")
		names = append(names, name)
		if _, flagged, _ := strings.Cut(listed, "Flags:\n"); flagged != "" {
			for _, f := range flags.FindAllStringSubmatch(flagged, -1) {
				if f[2] != "help" {
					names = append(names, name+" "+f[1]+"--"+f[2])
				}
			}
		}
		_, available, _ := strings.Cut(listed, "Available Commands:\n")
		available, _, _ = strings.Cut(available, "\n\n")
		for _, c := range commands.FindAllStringSubmatch(available, -1) {
			if c[1] != "completion" && c[1] != "help" { // commands of the library
				visit(append(slices.Clone(command), c[1])...)
			}
		}
	}
	visit()
	return names
}

// sources are the product's Go files in these folders.
func sources(t *testing.T, folders ...string) (files []string) {
	t.Helper()
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(file string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(file, ".go") && !strings.HasSuffix(file, "_test.go") {
				files = append(files, file)
			}
			return err
		})
		require.NoError(t, err)
	}
	return files
}

// matches are the texts of the pattern's group in the files, sorted.
func matches(t *testing.T, pattern string, files ...string) (found []string) {
	t.Helper()
	compiled := regexp.MustCompile(pattern)
	for _, file := range files {
		content, err := os.ReadFile(root + file)
		require.NoError(t, err)
		for _, m := range compiled.FindAllStringSubmatch(string(content), -1) {
			found = append(found, strings.ReplaceAll(m[1], "`", ""))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// declarations visits the declarations of product files directly in this folder.
func declarations(t *testing.T, folder string, visit func(ast.Node) bool) {
	t.Helper()
	for _, file := range sources(t, folder) {
		if path.Dir(file) == folder {
			parsed, err := parser.ParseFile(token.NewFileSet(), root+file, nil, 0)
			require.NoError(t, err)
			ast.Inspect(parsed, visit)
		}
	}
}

// constants are the values of the constants whose names match.
func constants(t *testing.T, name *regexp.Regexp, folders ...string) (values []string) {
	t.Helper()
	for _, folder := range folders {
		declarations(t, folder, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			for i := 0; is && i < min(len(spec.Names), len(spec.Values)); i++ {
				literal, is := spec.Values[i].(*ast.BasicLit)
				if !is || !name.MatchString(spec.Names[i].Name) {
					continue
				}
				value, err := strconv.Unquote(literal.Value)
				if err != nil { // a number
					value = literal.Value + " " + spec.Names[i].Name
				}
				values = append(values, value)
			}
			return true
		})
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// jsonKeys are the JSON keys of the structs in these folders.
func jsonKeys(t *testing.T, folders ...string) (keys []string) {
	t.Helper()
	for _, folder := range folders {
		declarations(t, folder, func(n ast.Node) bool {
			field, is := n.(*ast.Field)
			if !is || field.Tag == nil {
				return true
			}
			tag, _ := strconv.Unquote(field.Tag.Value)
			if key, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ","); key != "" && key != "-" {
				keys = append(keys, strings.TrimPrefix(folder, "internal/")+" "+key)
			}
			return true
		})
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// objectNames are the names of a complete pipeline's and delayed exchange's objects on the broker.
func objectNames() []string {
	const name = "NAME"
	p := pipeline.Pipeline{
		Name: name, Vhost: "/", Delays: []pipeline.Delay{{Wait: 5 * time.Second}}, MaxAttempts: 2,
		WorkQueues: map[string]pipeline.WorkQueue{"WORK-QUEUE": {FailedQueue: "FAILED-QUEUE"}},
	}
	attachment := pipeline.Attachment{Pipeline: name, Vhost: "/", Queue: "ATTACHED"}
	e := delayed.Exchange{Name: name, Vhost: "/", MaxDelay: pipeline.Delay{Wait: time.Second}, Precision: pipeline.Delay{Wait: 100 * time.Millisecond}}
	var names []string
	add := func(object, key string, arguments topology.Arguments) {
		names = append(names, object+key)
		for argument := range arguments {
			names = append(names, object+": "+argument)
		}
	}
	for of, all := range map[string]topology.Topology{
		"pipeline": p.Expand(), "attachment": attachment.Expand(), "delayed exchange": e.Expand(),
	} {
		for name, x := range all.Exchanges {
			add(of+": exchange "+name, "", x.Arguments)
		}
		for name, q := range all.Queues {
			add(of+": queue "+name, "", q.Arguments)
		}
		for name, p := range all.Policies {
			add(of+": policy "+name, "", p.Definition)
		}
		for _, b := range all.Bindings {
			add(fmt.Sprintf("%s: binding %s -> %s", of, b.Source, b.Destination), fmt.Sprintf(", key %q", b.RoutingKey), b.Arguments)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
