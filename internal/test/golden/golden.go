// Package golden compares what tests generate from the code with what is committed.
package golden

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write what is generated")

// Check compares a whole file with the generated text. With the flag -update, it writes the file.
func Check(t testing.TB, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	require.Equalf(t, text, read(t, file), "%s is generated: run this test with -update", file)
}

// Section does the same for the part of a guide between its lines "<!-- generated: name -->" and "<!-- end -->".
func Section(t testing.TB, guide, name, text string) {
	t.Helper()
	file := "../../templates/guides/" + guide + ".md.tmpl"
	begin, end := "<!-- generated: "+name+" -->\n\n", "\n<!-- end -->\n"
	before, rest, begins := strings.Cut(read(t, file), begin)
	_, after, ends := strings.Cut(rest, end)
	require.Truef(t, begins && ends, "%s has no part %q", file, name)
	// Two braces begin an action of the template.
	text = strings.ReplaceAll(strings.TrimSpace(text), "{{", `{{ "{{" }}`)
	Check(t, file, before+begin+text+"\n"+end+after)
}

// Table is a table in Markdown.
func Table(header []string, rows [][]string) string {
	var table strings.Builder
	line := func(cells []string) { table.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(header)
	table.WriteString(strings.Repeat("|---", len(header)) + "|\n")
	for _, row := range rows {
		line(row)
	}
	return table.String()
}

func read(t testing.TB, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(content)
}
