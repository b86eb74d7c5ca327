package failed_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
)

// The page has every header and every reason, with the comments of their constants.
func TestReferenceOfHeaders(t *testing.T) {
	t.Parallel()
	for _, part := range []struct {
		name, prefix string
		packages     []string
	}{
		{"headers of retries", "Header", []string{"deadletter"}},
		{"headers of delays", "Header", []string{"delaying"}},
		{"headers of the commands", "Header", []string{"failed"}},
		{"reasons", "Reason", []string{"deadletter", "pipeline", "delaying", "failed"}},
		{"detours", "Detour", []string{"deadletter"}},
	} {
		var rows [][]string
		for _, folder := range part.packages {
			rows = append(rows, constants(t, folder, part.prefix)...)
		}
		require.NotEmpty(t, rows, part.name)
		golden.Section(t, "headers-and-reasons", part.name, golden.Table([]string{"value", "meaning"}, rows))
	}
}

// constants are the values of a package's exported constants of this prefix, with their comments.
func constants(t *testing.T, folder, prefix string) (rows [][]string) {
	t.Helper()
	files, err := filepath.Glob("../" + folder + "/*.go")
	require.NoError(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			declared, is := n.(*ast.GenDecl)
			if !is || declared.Tok != token.CONST {
				return true
			}
			for _, spec := range declared.Specs {
				constant := spec.(*ast.ValueSpec)
				name := constant.Names[0].Name
				if len(name) == len(prefix) || !strings.HasPrefix(name, prefix) {
					continue
				}
				written := constant.Doc.Text()
				if !declared.Lparen.IsValid() {
					written = declared.Doc.Text()
				}
				require.NotEmptyf(t, written, "%s has no comment", name)
				value, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				rows = append(rows, []string{"`" + value + "`", meaning(name, written)})
			}
			return true
		})
	}
	return rows
}

// see is a sentence for readers of the code.
var see = regexp.MustCompile(` See \[[\w.]+\]\.`)

// meaning is a constant's comment for readers of the page.
func meaning(name, written string) string {
	text := strings.TrimSpace(strings.ReplaceAll(written, "\n", " "))
	text = see.ReplaceAllString(text, "")
	for _, beginning := range []string{name + " is ", name + " has ", name + " says ", name + " means that ", name + " ", name + ": "} {
		if rest, begins := strings.CutPrefix(text, beginning); begins {
			return strings.ToUpper(rest[:1]) + rest[1:]
		}
	}
	return text
}
