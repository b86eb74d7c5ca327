//go:build interop

package interop

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// A page is done from top to bottom, between two headings, in one shell.
type page struct {
	file, from, to string
	// directory is where the reader begins, below home: next to the clone, or in it.
	directory string
	// files are the blocks that the reader writes to a file, by how they begin.
	files map[string]string
	// before is what the reader has done already.
	before string
	// instead is what stands for what a reader sees and does.
	instead []string
	// after is what the reader does next.
	after string
	// shows is what has to come, in this order.
	shows []string
}

const clone = "terraform-provider-rabbitmq"

// published is where readers fetch the sidecar.
const published = "https://github.com/rabbitmq-retry/terraform-provider-rabbitmq/releases/download/v" + releaseVersion + "/"

// built has the two programs, and an override for Terraform.
const built = `make build
cat > bin/dev.tfrc <<EOF
provider_installation {
  dev_overrides { "rabbitmq-retry/rabbitmq" = "$PWD/bin" }
  direct {}
}
EOF
export TF_CLI_CONFIG_FILE=$PWD/bin/dev.tfrc PATH=$PWD/bin:$PATH
`

const freePort = `PORT=$(/usr/bin/python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
`

// The pages work as they are printed, in a new clone, in a new shell, on a broker with nothing in it.
func TestPagesAsPrinted(t *testing.T) {
	t.Parallel()
	releases, install := releaseUnderTest(t).serve(t)
	upgrading := page{file: "docs/guides/upgrading.md", from: "\n## The order\n", instead: []string{
		"rabbitmq-retry worker", "RABBITMQ_URI=amqp://guest:guest@localhost:5672 rabbitmq-retry worker",
	}}
	monitoring := page{file: "docs/guides/monitoring.md", from: "\n## Probes\n", to: "\n## Scraping\n", instead: []string{"15695", "$PORT"}}
	for _, p := range []page{
		{
			file: "README.md", from: "\n0.1.0 is not published yet", to: "\n## Next\n",
			files: map[string]string{"terraform {": "main.tf", "import pika": "consumer.py"},
			instead: []string{
				"git clone ", ": git clone ", // of what is here
				"make demo", ": make demo",
				"pip install pika", ": pip install pika",
				"python3 consumer.py &", "/usr/bin/python3 -u consumer.py >attempts 2>&1 &",
				"kill %1 %2", "until grep -q 'attempt 3' attempts; do sleep 1; done; cat attempts; kill %1 %2",
			},
			shows: []string{
				"Plan: 1 to add, 0 to change, 0 to destroy.", "1 added, 0 changed, 0 destroyed", `pipeline "orders" in vhost "/": ok: `,
				"attempt 1 ", "attempt 2 ", "attempt 3 ", "1 destroyed",
			},
		},
		{
			file: "docs/guides/getting-started.md", from: "\n## Before\n", to: "\n## Next\n",
			files: map[string]string{"terraform {": "main.tf"}, before: install,
			instead: []string{
				published, releases + "/files/",
				"rabbitmq-retry failed list orders\n",
				"until rabbitmq-retry failed list orders | tee list | grep exhausted; do sleep 1; done; cat list\n",
			},
			shows: []string{
				"1 added, 0 changed, 0 destroyed", `pipeline "orders" in vhost "/": ok: `, `"payload":"hello"`,
				`"retry-count":1`, `"retry-count":2`, "exhausted", "replayed 1 of 1 to orders.created", `"replay-count":1`, "1 destroyed",
			},
		},
		{
			file: "docs/index.md", from: "\n## Example Usage\n", to: "\n## Guides\n", files: map[string]string{"terraform {": "main.tf"},
			before: install + "export PATH=" + filepath.Dir(terraformtest.BuildSidecar(t)) + ":$PATH\n" + freePort,
			instead: []string{
				"terraform output", "export RABBITMQ_ENDPOINT=http://localhost:15672 RABBITMQ_USERNAME=guest RABBITMQ_PASSWORD=guest\n" +
					"terraform init\nterraform apply\nterraform output",
				"--config worker.json\n", "--config worker.json --listen $PORT &\n" +
					"until curl -sf http://127.0.0.1:$PORT/readyz >ready; do sleep 0.1; done\n",
			},
			after: monitoring.script(monitoring.text(t, "../../..")) + upgrading.script(upgrading.text(t, "../../..")),
			shows: []string{"1 added, 0 changed, 0 destroyed", `"ready": true`, `pipeline "orders" in vhost "/": ok: `, "No changes."},
		},
		{
			file: "docs/guides/testing.md", from: "\n## Export once\n", directory: clone, before: built + "cd examples/testing\n" + freePort,
			instead: []string{
				"docker compose up --detach --wait rabbitmq\n", "",
				"docker compose up --detach rabbitmq-retry\ncurl ", ": curl ",
				"pytest ", "curl -s http://127.0.0.1:$PORT/readyz ",
				"15695", "$PORT",
			},
			shows: []string{"2 added, 0 changed, 0 destroyed", "consuming pipeline=orders vhost=ci-1", `"ready": true`, `pipeline "orders" in vhost "ci": ok: `},
		},
		{
			file: "docs/guides/deploying-the-sidecar.md", from: "\n## From source\n", directory: clone,
			instead: []string{"PATH=$PWD/bin:$PATH\n", `PATH=$PWD/bin:$PATH
mkdir ../mirrored && cp examples/testing/main.tf ../mirrored && cd ../mirrored
terraform init && terraform validate
`},
			shows: []string{"rabbitmq-retry/rabbitmq v0.1.0", "The configuration is valid"},
		},
	} {
		t.Run(filepath.Base(p.file), func(t *testing.T) {
			t.Parallel()
			home := t.TempDir()
			text := p.text(t, cloneInto(t, home))
			output := asNewcomer(t, home, filepath.Join(home, p.directory), p.before+p.script(text)+p.after)
			p.check(t, text, output)
		})
	}
}

// text is the part of the page that is done.
func (p page) text(t *testing.T, root string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, p.file))
	require.NoError(t, err)
	_, text, begins := strings.Cut(string(content), p.from)
	text, _, ends := strings.Cut(text+"\n## \n", cmp.Or(p.to, "\n## \n"))
	if !begins || !ends {
		t.Fatalf("%s has no part from %q to %q", p.file, p.from, p.to)
	}
	return text
}

var block = regexp.MustCompile("(?ms)^ *```(\\w+)\n(.*?)^ *```$")

// script does what the page says. There is a broker already.
func (p page) script(text string) string {
	var script strings.Builder
	for _, found := range block.FindAllStringSubmatch(text, -1) {
		language, code := found[1], found[2]
		if done := strings.NewReplacer(p.instead...).Replace(code); language == "shell" && !strings.HasPrefix(done, "docker ") {
			script.WriteString(done)
		}
		for beginning, file := range p.files {
			if strings.HasPrefix(code, beginning) {
				fmt.Fprintf(&script, "cat >%s <<'END OF FILE'\n%sEND OF FILE\n", file, code)
			}
		}
	}
	return script.String()
}

// check compares the output with what has to come, and with what the page shows of it.
func (p page) check(t *testing.T, text, output string) {
	t.Helper()
	rest, found := output, false
	for _, want := range p.shows {
		if _, rest, found = strings.Cut(rest, want); !found {
			t.Fatalf("%q does not come, or not here:\n%s", want, output)
		}
	}
	came := alike(output)
	for _, shown := range block.FindAllStringSubmatch(text, -1) {
		if shown[1] != "text" {
			continue
		}
		for line := range strings.Lines(shown[2]) {
			if line = strings.TrimSpace(line); line != "..." && !strings.Contains(came, alike(line)) {
				t.Errorf("the page shows %q, which does not come:\n%s", line, output)
			}
		}
	}
}

var (
	spaces = regexp.MustCompile(`[ \t]+`)
	// changing is what differs between runs: ages, times and ids.
	changing = regexp.MustCompile(`\b(?:\d+s|\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ|[0-9a-f]{8}|[0-9a-f]{16})\b`)
)

// alike is a text without what differs between runs, and without the width of columns.
func alike(text string) string {
	return changing.ReplaceAllString(spaces.ReplaceAllString(text, " "), "~")
}

// cloneInto copies what git has of this repository, as it is now, into a folder of home.
func cloneInto(t *testing.T, home string) string {
	t.Helper()
	target := filepath.Join(home, clone)
	command := exec.CommandContext(t.Context(), "bash", "-c",
		`set -euo pipefail; mkdir "$0"; cd "$(git rev-parse --show-toplevel)"; git ls-files -z | xargs -0 cp --parents --target-directory="$0"`, target)
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return target
}

// newcomer is a shell of somebody who answers every question with yes, with a broker at the addresses of the page.
const newcomer = `set -euo pipefail
sed -i -e "s|http://localhost:15672|$RABBITMQ_ENDPOINT|g" -e "s|amqp://guest:guest@localhost:5672|$RABBITMQ_URI|g" \
  -e "s|guest:guest|$RABBITMQ_USERNAME:$RABBITMQ_PASSWORD|g" \
  -e "s|USERNAME=guest|USERNAME=$RABBITMQ_USERNAME|" -e "s|PASSWORD=guest|PASSWORD=$RABBITMQ_PASSWORD|" "$SCRIPT"
env -i "${@}" bash -e -o pipefail "$SCRIPT" < <(yes yes)
`

// asNewcomer runs the script below a broker of its own, and returns what it prints.
func asNewcomer(t *testing.T, home, directory, script string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(file, []byte("trap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"+script), 0o600))
	broker, err := filepath.Abs("../../../scripts/with-broker")
	require.NoError(t, err)
	command := exec.CommandContext(t.Context(), broker, "--", "bash", "-c", newcomer, "newcomer",
		"HOME="+home, "PATH="+terraformtest.OnPath(t)+":"+os.Getenv("PATH"), "GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"))
	command.Dir, command.WaitDelay = directory, time.Minute
	command.Env = append(os.Environ(), "RABBITMQ_ENDPOINT=", "RABBITMQ_URI=", "SCRIPT="+file)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s\n\n%s", err, output, script)
	}
	return colour.ReplaceAllString(string(output), "")
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

func goEnv(t *testing.T, name string) string {
	t.Helper()
	value, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	require.NoError(t, err)
	return strings.TrimSpace(string(value))
}
