//go:build interop

package interop

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// publishers is the folder with a program for a delayed exchange in each language.
const publishers = "../../../examples/publishers/"

// section is what is below a heading of a guide.
func section(t *testing.T, guide, heading string) string {
	t.Helper()
	return below(t, "../../../docs/guides/"+guide+".md", heading)
}

// below is what is below a heading of a page.
func below(t *testing.T, page, heading string) string {
	t.Helper()
	_, found, begins := strings.Cut(contents(t, page), "\n## "+heading+"\n")
	if !begins {
		t.Fatalf("%s has no heading %q", page, heading)
	}
	found, _, _ = strings.Cut(found, "\n## ")
	return found
}

func contents(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

// code is the first block in a language.
func code(t *testing.T, text, language string) string {
	t.Helper()
	_, found, begins := strings.Cut(text, "```"+language+"\n")
	found, _, ends := strings.Cut(found, "\n```\n")
	if !begins || !ends {
		t.Fatalf("there is no code in %s in\n%s", language, text)
	}
	return found + "\n"
}

// printed is a line of a program's output, and when it came.
type printed struct {
	text string
	at   time.Time
}

// startProgram runs a program in a language, with more environment, and returns the lines that it prints.
func startProgram(t *testing.T, b *brokertest.Broker, text, language string, env ...string) <-chan printed {
	t.Helper()
	output, input, err := os.Pipe()
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	run := runnable(t, text, language)
	program := exec.CommandContext(ctx, run[0], run[1:]...)
	program.Dir = filepath.Dir(run[len(run)-1])
	program.Env = append(append(os.Environ(), "RABBITMQ_URI="+b.VhostURI()), env...)
	program.Stdout, program.Stderr = input, input
	require.NoError(t, program.Start())
	require.NoError(t, input.Close())
	t.Cleanup(func() { cancel(); _ = program.Wait(); _ = output.Close() })
	lines := make(chan printed, 100)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			lines <- printed{scanner.Text(), time.Now()}
		}
	}()
	return lines
}

// Where Debian has the client libraries.
var (
	javaLibraries = []string{"/usr/share/java/amqp-client.jar", "/usr/share/java/slf4j-api.jar", "/usr/share/java/slf4j-nop.jar"}
	phpLibrary    = "/usr/share/php/PhpAmqpLib/autoload.php"
)

// runnable writes a program to a file, and returns the command that runs it, with the file at the end.
func runnable(t *testing.T, text, language string) []string {
	t.Helper()
	extensions := map[string]string{"python": "py", "go": "go", "javascript": "js", "java": "java", "php": "php"}
	file := filepath.Join(t.TempDir(), "program."+extensions[language])
	write(t, file, text)
	switch language {
	case "go":
		program := strings.TrimSuffix(file, ".go")
		if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, file).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, output)
		}
		return []string{program}
	case "javascript":
		installAMQPLib(t, filepath.Dir(file))
		return []string{"node", file}
	case "java":
		needs(t, "librabbitmq-client-java and a JDK", append([]string{"/usr/bin/java"}, javaLibraries...)...)
		return []string{"java", "--class-path", strings.Join(javaLibraries, ":"), file}
	case "php":
		needs(t, "php-cli and php-amqplib", "/usr/bin/php", phpLibrary)
		write(t, filepath.Join(filepath.Dir(file), "vendor", "autoload.php"), "<?php require '"+phpLibrary+"';\n")
		return []string{"php", file}
	default:
		return []string{"/usr/bin/python3", file}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
}

// needs skips the test unless there are these files, of packages of Debian.
func needs(t *testing.T, packages string, files ...string) {
	t.Helper()
	for _, file := range files {
		if _, err := os.Stat(file); err != nil {
			t.Skipf("%v: apt-get install %s", err, packages) //nolint:forbidigo // the public workflow has none of these tests
		}
	}
}

// installAMQPLib has npm install the client library next to a program.
func installAMQPLib(t *testing.T, directory string) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		brokertest.NeedsProgram(t, program)
	}
	install := exec.CommandContext(t.Context(), "npm", "install", "--no-audit", "--no-fund", "amqplib@2")
	install.Dir = directory
	if output, err := install.CombinedOutput(); err != nil {
		t.Skipf("npm cannot install amqplib: %v\n%s", err, output) //nolint:forbidigo // the public workflow has none of these tests
	}
}
