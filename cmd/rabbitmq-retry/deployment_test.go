package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// deployment is one of the deployments of the worker in examples/.
type deployment struct {
	args []string
	env  map[string]string
	// grace is how long the worker can take to stop before it is killed.
	grace time.Duration
	// mounts are the mounted directories of the container.
	mounts []string
}

// flag is the value of a flag, "" if it is not set.
func (d deployment) flag(name string) string {
	for _, arg := range d.args {
		if value, found := strings.CutPrefix(arg, "--"+name+"="); found {
			return value
		}
	}
	return ""
}

// config is the path of the worker configuration.
func (d deployment) config() string { return cmp.Or(d.flag("config"), d.env[cli.EnvConfig]) }

func TestExamplesUseFlagsThatExist(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]deployment{"Kubernetes": kubernetes(t), "Compose": compose(t), "systemd": systemd(t)} {
		require.Truef(t, len(d.args) >= 4 && d.args[0] == "worker", "%s: arguments %q", name, d.args)
		command := newWorkerCommand(func(string) string { return "" })
		require.NoError(t, command.ParseFlags(d.args[1:]), name)
		drain, err := time.ParseDuration(d.flag("drain-timeout"))
		assert.Truef(t, err == nil && d.grace >= drain+10*time.Second,
			"%s: killed after %s, although it may drain for %s and then hangs up: %v", name, d.grace, drain, err)
	}
}

// A file is missing, or never updated, unless its whole directory is mounted.
func TestExamplesMountWhatTheirFlagsName(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]deployment{"Kubernetes": kubernetes(t), "Compose": compose(t)} {
		for _, file := range []string{d.config(), d.flag("username-file"), d.flag("password-file")} {
			assert.Containsf(t, d.mounts, path.Dir(file), "%s: %s", name, file)
		}
	}
}

const examples = "../../examples/complete/"

// object is a part of a YAML document.
type object map[string]any

// in follows keys, and takes the first element of each list.
func (o object) in(keys ...string) object {
	var at any = o
	for _, key := range keys {
		at = at.(object)[key]
		if list, ok := at.([]any); ok {
			at = list[0]
		}
	}
	return at.(object)
}

func documents(t *testing.T, name string) (all []object) {
	t.Helper()
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, examples+name)))
	for {
		var next object
		err := decoder.Decode(&next)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoErrorf(t, err, "%s", name)
		all = append(all, next)
	}
}

func kubernetes(t *testing.T) deployment {
	t.Helper()
	pod := documents(t, "kubernetes.yaml")[0].in("spec", "template", "spec")
	container := pod.in("containers")
	grace, err := time.ParseDuration(fmt.Sprintf("%vs", pod["terminationGracePeriodSeconds"]))
	require.NoError(t, err)
	d := deployment{args: texts(container["args"]), grace: grace, env: map[string]string{}}
	for _, variable := range container["env"].([]any) {
		d.env[variable.(object)["name"].(string)] = variable.(object)["value"].(string)
	}
	for _, mount := range container["volumeMounts"].([]any) {
		if mount := mount.(object); mount["subPath"] == nil && mount["readOnly"] == true {
			d.mounts = append(d.mounts, mount["mountPath"].(string))
		}
	}
	return d
}

func compose(t *testing.T) deployment {
	t.Helper()
	service := documents(t, "compose.yaml")[0].in("services", "rabbitmq-retry")
	grace, err := time.ParseDuration(service["stop_grace_period"].(string))
	require.NoError(t, err)
	d := deployment{args: texts(service["command"]), grace: grace}
	for _, mount := range texts(service["volumes"]) {
		if parts := strings.Split(mount, ":"); len(parts) == 3 && parts[2] == "ro" {
			d.mounts = append(d.mounts, parts[1])
		}
	}
	return d
}

func systemd(t *testing.T) deployment {
	t.Helper()
	unit := strings.ReplaceAll(string(read(t, examples+"sidecar.service")), "\\\n", " ")
	value := func(key string) string {
		match := regexp.MustCompile("(?m)^" + key + "=(.*)$").FindStringSubmatch(unit)
		require.NotNilf(t, match, "no %s in %s", key, unit)
		return match[1]
	}
	grace, err := time.ParseDuration(value("TimeoutStopSec"))
	require.NoError(t, err)
	return deployment{args: strings.Fields(value("ExecStart"))[1:], grace: grace}
}

func texts(list any) (all []string) {
	for _, element := range list.([]any) {
		all = append(all, element.(string))
	}
	return all
}

// No other test would find a probe of a missing port.
func TestKubernetesManifestIsConsistent(t *testing.T) {
	t.Parallel()
	all := documents(t, "kubernetes.yaml")
	pod := all[0].in("spec", "template", "spec")
	container := pod.in("containers")
	port := container.in("ports")
	_, listens, _ := strings.Cut(kubernetes(t).flag("listen"), ":")
	assert.Equal(t, []any{"15695", 15695}, []any{listens, port["containerPort"]})
	for probe, path := range map[string]string{"livenessProbe": "/healthz", "readinessProbe": "/readyz"} {
		get := container.in(probe, "httpGet")
		assert.Truef(t, get["path"] == path && get["port"] == port["name"], "%s asks for %v", probe, get)
	}
	assert.Subset(t, pod.in("securityContext"), object{"runAsNonRoot": true, "runAsUser": imageUser, "fsGroup": imageUser})
	assert.Subset(t, container.in("securityContext"), object{"readOnlyRootFilesystem": true, "allowPrivilegeEscalation": false})
	labels := all[0].in("spec", "template", "metadata", "labels")
	for _, selector := range []object{
		all[0].in("spec", "selector", "matchLabels"), all[1].in("spec", "selector", "matchLabels"), all[2].in("spec", "podSelector", "matchLabels"),
	} {
		assert.Truef(t, len(selector) == 1 && selector["app.kubernetes.io/name"] == labels["app.kubernetes.io/name"],
			"selector %v, labels %v", selector, labels)
	}
	assert.Equal(t, port["name"], all[2].in("spec", "ingress", "ports")["port"])
}

func TestUnitWithSystemdAnalyze(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	require.NoError(t, err)
	unit := filepath.Join(t.TempDir(), "rabbitmq-retry.service")
	text := bytes.ReplaceAll(read(t, examples+"sidecar.service"), []byte("/usr/local/bin/rabbitmq-retry"), []byte(program))
	require.NoError(t, os.WriteFile(unit, text, 0o600))
	output, err := installed(t, "systemd-analyze", "verify", "--man=no", unit).CombinedOutput()
	require.NoErrorf(t, err, "%s", output)
	assert.NotContains(t, string(output), "rabbitmq-retry") // what it ignores is no error for it
}

// kubectl drops what it does not know.
func TestManifestWithKubectl(t *testing.T) {
	t.Parallel()
	deployment, _, _ := bytes.Cut(read(t, examples+"kubernetes.yaml"), []byte("\n---\n"))
	written := documents(t, "kubernetes.yaml")[0]
	command := installed(t, "kubectl", "set", "env", "--local", "--filename=-", "--output=json", "ADDED=yes") // or it prints nothing
	var complaints bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(deployment), &complaints
	output, err := command.Output()
	require.NoErrorf(t, err, "%s", complaints.String())
	var known map[string]any
	require.NoError(t, json.Unmarshal(output, &known))
	assert.Subset(t, leaves("", known), leaves("", written))
}

// leaves are the values of a document with their paths.
func leaves(path string, value any) (all []string) {
	switch value := value.(type) {
	case object:
		return leaves(path, map[string]any(value))
	case map[string]any:
		for key, element := range value {
			all = append(all, leaves(path+"."+key, element)...)
		}
	case []any:
		for i, element := range value {
			all = append(all, leaves(fmt.Sprintf("%s[%d]", path, i), element)...)
		}
	default:
		all = append(all, fmt.Sprintf("%s = %v", path, value))
	}
	return all
}

// installed is a command of a program that not every machine has.
func installed(t *testing.T, program string, args ...string) *exec.Cmd {
	t.Helper()
	brokertest.NeedsProgram(t, program)
	return exec.CommandContext(t.Context(), program, args...)
}
