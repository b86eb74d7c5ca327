package brokertest

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/go-version"
)

// What .github/workflows/test.yml runs the tests with. A test that needs anything else would run nowhere.
var (
	publicReleases = []string{"3.10", "3.13", "4.0", "4.1", "4.2", "4.3"}                    // always the latest patch
	publicPlugins  = []string{"rabbitmq_shovel", "rabbitmq_federation", "rabbitmq_amqp1_0"}  // of GNUmakefile
	publicPrograms = []string{"jq", "kubectl", "node", "npm", "systemd-analyze", "promtool"} // the workflow installs promtool
)

// A Need is what a test needs of the broker.
type Need struct {
	text string
	// met reports whether the broker of the environment has it.
	met func(testing.TB, *Broker) bool
	// public reports whether the broker with this release has it in the public workflow.
	public func(release string) bool
}

// Release is the need of certain releases, such as ">= 4.0" or ">= 3.11, < 4.3".
func Release(constraint string) Need {
	constraints := version.MustConstraints(version.NewConstraint(constraint))
	allows := func(release string) bool { return constraints.Check(version.Must(version.NewVersion(release)).Core()) }
	return Need{
		text:   "RabbitMQ " + constraint,
		met:    func(_ testing.TB, b *Broker) bool { return allows(b.Version) },
		public: func(release string) bool { return allows(release + ".999") },
	}
}

// Plugin is the need of a plugin, such as "rabbitmq_shovel".
func Plugin(name string) Need {
	return Need{
		text:   "the plugin " + name,
		met:    func(t testing.TB, b *Broker) bool { t.Helper(); return b.HasPlugin(t, name) },
		public: func(string) bool { return slices.Contains(publicPlugins, name) },
	}
}

// AMQP10 is the need of AMQP 1.0, which RabbitMQ 3 speaks by a plugin.
var AMQP10 = Need{
	text: "AMQP 1.0, by the plugin rabbitmq_amqp1_0 before 4.0",
	met: func(t testing.TB, b *Broker) bool {
		t.Helper()
		return b.SpeaksAMQP10(t)
	},
	public: func(string) bool { return true },
}

// engines has what each engine of pipelines needs.
var engines = map[string]Need{"worker": Release(">= 3.10"), "consumer": Release(">= 4.0"), "native": Release(">= 4.3.1")}

// Engine is the need of an engine of pipelines, such as "native".
func Engine(name string) Need { return engines[name] }

// Needs skips the test unless the broker has all of this. It fails a test that would run in no job of the public workflow.
func (b *Broker) Needs(t testing.TB, needs ...Need) {
	t.Helper()
	b.needs = append(b.needs, needs...)
	if !runsInPublic(b.needs) {
		t.Fatalf("no job of the public workflow has %s: this test would never run", texts(b.needs))
	}
	for _, need := range needs {
		if !need.met(t, b) {
			t.Skipf("needs %s; the broker is RabbitMQ %s", need.text, b.Version)
		}
	}
}

func runsInPublic(needs []Need) bool {
	return slices.ContainsFunc(publicReleases, func(release string) bool {
		return !slices.ContainsFunc(needs, func(need Need) bool { return !need.public(release) })
	})
}

func texts(needs []Need) string {
	var all []string
	for _, need := range needs {
		all = append(all, need.text)
	}
	return strings.Join(all, " and ")
}

// NeedsProgram skips the test unless this program is installed.
func NeedsProgram(t testing.TB, name string) {
	t.Helper()
	if !slices.Contains(publicPrograms, name) {
		t.Fatalf("the public workflow does not have %s: this test would never run", name)
	}
	if _, err := exec.LookPath(name); err != nil {
		t.Skipf("needs the program %s", name)
	}
}
