package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
)

const (
	troubleshooting = "templates/guides/troubleshooting.md.tmpl"
	alertsFile      = "examples/observability/alerts.yml"
)

// Whatever a reader has in hand, an error, a line of the log, an alert, an exit code or a reason, is in the guide, and the guide has
// nothing that the product does not say.
func TestTroubleshootingHasAllThatGoesWrong(t *testing.T) {
	t.Parallel()
	page := sections(t)
	source := readSource(t, "internal", "cmd")
	summaries := source.summaries(t)
	lines, quietLines := source.logLines(t)
	for _, kind := range []struct {
		name    string
		names   []string
		others  []string // which the guide can have, and need not
		section string
		place   *regexp.Regexp // of a name, within the section
		least   int
	}{
		{"error summaries", summaries, nil, "An error of a plan or apply", firstCell, 150},
		{"log lines", lines, quietLines, "A line of the sidecar's log", firstCell, 20},
		{"alerts", alerts(t), nil, "An alert", heading, 16},
		{"exit codes", source.constants("cmd/rabbitmq-retry", "exit"), nil, "An exit code", firstCell, 5},
		{
			"reasons", slices.Concat(source.constants("internal/deadletter", "Reason"), source.constants("internal/delaying", "Reason"),
				source.constants("internal/pipeline", "Reason"), source.constants("internal/failed", "Reason")),
			[]string{"No reason"},
			"A reason", heading, 13,
		},
		{"audit rules", audit.Rules(), nil, "A rule of the audit", ruleLink, 40},
	} {
		t.Logf("%d %s", len(kind.names), kind.name)
		assert.GreaterOrEqualf(t, len(kind.names), kind.least, "%s: has their form in the source changed?", kind.name)
		found := entries(page[kind.section], kind.place)
		for _, name := range kind.names {
			if !slices.ContainsFunc(found, said(name).MatchString) {
				t.Errorf("%q has no %q (%s)", kind.section, name, kind.name)
			}
		}
		var known []*regexp.Regexp
		for _, name := range slices.Concat(kind.names, kind.others) {
			known = append(known, said(name))
		}
		for _, entry := range found {
			if !slices.ContainsFunc(known, func(text *regexp.Regexp) bool { return text.MatchString(entry) }) {
				t.Errorf("%q has %q, which the product does not say", kind.section, entry)
			}
		}
	}
}

// Each alert leads to its entry.
func TestTroubleshootingIsWhereAlertsLead(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	const guide = onGitHub + "blob/main/docs/guides/troubleshooting.md#"
	for _, rule := range strings.Split(string(content), "- alert: ")[1:] {
		name, rest, _ := strings.Cut(rule, "\n")
		assert.Containsf(t, rest, "runbook_url: "+guide+strings.ToLower(name)+"\n", "%s", name)
	}
}

var (
	// firstCell is that of a row of a table, and heading a heading of an entry. Both have names as code, or as they are.
	firstCell = regexp.MustCompile("(?m)^\\| (`[^|]*?`|\\d) \\|")
	heading   = regexp.MustCompile(`(?m)^### (.+)$`)
	ruleLink  = regexp.MustCompile(`(\[[a-z-]+\])\(audit-rules\.md#`)
	code      = regexp.MustCompile("`([^`]+)`")
)

// entries are the names at these places.
func entries(section string, place *regexp.Regexp) (names []string) {
	for _, match := range place.FindAllStringSubmatch(section, -1) {
		spans := code.FindAllStringSubmatch(match[1], -1)
		for _, span := range spans {
			names = append(names, span[1])
		}
		if spans == nil {
			names = append(names, strings.Trim(match[1], "[]"))
		}
	}
	return names
}

// unknown stands for a part of a text that is not in the source.
const unknown = "\x00"

// said matches entries with a text of the source. For parts that are not in the source they have any text, such as an ellipsis.
func said(text string) *regexp.Regexp {
	return regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(text), unknown, ".+") + "$")
}

// sections are the parts of the page below each heading of the second level.
func sections(t *testing.T) map[string]string {
	t.Helper()
	content, err := os.ReadFile(troubleshooting)
	require.NoError(t, err)
	all := map[string]string{}
	for _, part := range strings.Split(string(content), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		all[title] = text
	}
	return all
}

func alerts(t *testing.T) (names []string) {
	t.Helper()
	content, err := os.ReadFile(alertsFile)
	require.NoError(t, err)
	for _, match := range regexp.MustCompile(`(?m)^ *- alert: (\S+)$`).FindAllStringSubmatch(string(content), -1) {
		names = append(names, match[1])
	}
	return names
}

// goSource is the product's code.
type goSource struct {
	files map[string]*ast.File
	// values are those of constants, and of functions that only return a value, by package and name.
	values map[string]ast.Expr
}

func readSource(t *testing.T, folders ...string) goSource {
	t.Helper()
	s := goSource{map[string]*ast.File{}, map[string]ast.Expr{}}
	for _, folder := range folders {
		require.NoError(t, filepath.WalkDir(folder, func(file string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			s.files[filepath.ToSlash(file)] = parsed
			return err
		}))
	}
	for file, parsed := range s.files {
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ValueSpec:
				for i := range min(len(n.Names), len(n.Values)) {
					s.values[path.Dir(file)+"."+n.Names[i].Name] = n.Values[i]
				}
			case *ast.FuncDecl:
				if only, is := onlyReturn(n); is && n.Recv == nil {
					s.values[path.Dir(file)+"."+n.Name.Name] = only
				}
			}
			return true
		})
	}
	return s
}

func onlyReturn(f *ast.FuncDecl) (ast.Expr, bool) {
	if f.Body == nil || len(f.Body.List) != 1 {
		return nil, false
	}
	r, is := f.Body.List[0].(*ast.ReturnStmt)
	if !is || len(r.Results) != 1 {
		return nil, false
	}
	return r.Results[0], true
}

// constants are the values of a package's constants whose names begin so.
func (s goSource) constants(folder, prefix string) (values []string) {
	for name, value := range s.values {
		if text := s.text(folder, value); strings.HasPrefix(name, folder+"."+prefix) && text != unknown {
			values = append(values, text)
		}
	}
	slices.Sort(values)
	return values
}

// text is the text of an expression, with a mark for each part that is not in the source.
func (s goSource) text(folder string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if value, err := strconv.Unquote(e.Value); err == nil {
			return value
		}
		return e.Value
	case *ast.Ident:
		if value, known := s.values[folder+"."+e.Name]; known {
			return s.text(folder, value)
		}
	case *ast.SelectorExpr:
		if from, is := e.X.(*ast.Ident); is {
			if value, known := s.values["internal/"+from.Name+"."+e.Sel.Name]; known {
				return s.text("internal/"+from.Name, value)
			}
		}
	case *ast.BinaryExpr:
		return s.text(folder, e.X) + s.text(folder, e.Y)
	case *ast.CallExpr:
		if named(e) == "Sprintf" {
			return regexp.MustCompile(`%(\[\d\])?[a-z]`).ReplaceAllString(s.text(folder, e.Args[0]), unknown)
		}
		return s.text(folder, e.Fun)
	}
	return unknown
}

// named is the last name in an expression, such as that of a called function.
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.CallExpr:
		return named(e.Fun)
	case *ast.IndexExpr:
		return named(e.X)
	}
	return ""
}

// summaryAt is which argument of a function is a summary. helperAt has the functions of packages preflight and rules.
var (
	summaryAt = map[string]int{
		"NewErrorDiagnostic": 0, "NewWarningDiagnostic": 0, "NewAttributeErrorDiagnostic": 1, "NewAttributeWarningDiagnostic": 1,
		"AddError": 0, "AddWarning": 0, "AddAttributeError": 1, "AddAttributeWarning": 1,
	}
	helperAt = map[string]int{"add": 2, "missing": 1, "one": 1, "problem": 1, "refuse": 1, "warn": 1}
)

// summaries are those of all errors and warnings in plans and applies.
func (s goSource) summaries(t *testing.T) []string {
	t.Helper()
	found := map[string]bool{}
	folders := regexp.MustCompile(`^internal/(pipeline|preflight|provider|rules)(/|$)`)
	for _, file := range slices.Sorted(maps.Keys(s.files)) {
		folder := path.Dir(file)
		if !folders.MatchString(folder) {
			continue
		}
		ast.Inspect(s.files[file], func(n ast.Node) bool {
			for _, e := range summariesOf(n, folder) {
				switch text := s.text(folder, e); {
				case strings.Trim(text, unknown) != "":
					found[text] = true
				case text == unknown && !strings.EqualFold(named(e), "summary"): // which comes from elsewhere
					t.Errorf("%s: a summary cannot be read: %s", file, named(e))
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(found))
}

// summariesOf are the summaries in a call, in a value and in a function that returns one.
func summariesOf(n ast.Node, folder string) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		at, is := summaryAt[named(n)]
		if helper, has := helperAt[named(n)]; has && slices.Contains([]string{"internal/preflight", "internal/rules"}, folder) {
			at, is = helper, true
		}
		if f, ofPackage := n.Fun.(*ast.SelectorExpr); ofPackage && f.Sel.Name == "New" && named(f.X) == "problem" {
			at, is = 1, true
		}
		if is && len(n.Args) > at+1 { // a detail follows
			return []ast.Expr{n.Args[at]}
		}
	case *ast.KeyValueExpr:
		if named(n.Key) == "Summary" && folder != "internal/provider/function" {
			return []ast.Expr{n.Value}
		}
	case *ast.FuncDecl:
		return returnedSummaries(n.Type, n.Body)
	case *ast.FuncLit:
		return returnedSummaries(n.Type, n.Body)
	}
	return nil
}

func returnedSummaries(of *ast.FuncType, body *ast.BlockStmt) (found []ast.Expr) {
	if of.Results == nil || len(of.Results.List[0].Names) == 0 || of.Results.List[0].Names[0].Name != "summary" {
		return nil
	}
	ast.Inspect(body, func(n ast.Node) bool {
		if r, is := n.(*ast.ReturnStmt); is && len(r.Results) > 1 {
			found = append(found, r.Results[0])
		}
		return true
	})
	return found
}

// logTexts are the names of the constants that become lines of the log.
var logTexts = regexp.MustCompile(`^internal/worker/session\.(deferred|(detour|parked)(Missing|Forbidden|NoDelay)|setAside|unroutedAlone)`)

// logLines are the lines of the sidecar's log: those of the levels warning and error, and those of the levels below.
func (s goSource) logLines(t *testing.T) (serious, quiet []string) {
	t.Helper()
	levels := map[string]map[string]bool{"Debug": {}, "Info": {}, "Warn": {}, "Error": {}}
	folders := regexp.MustCompile(`^(cmd|internal/(amqpconn|probe|reload|worker))(/|$)`)
	for file, parsed := range s.files {
		folder := path.Dir(file)
		ast.Inspect(parsed, func(n ast.Node) bool {
			call, is := n.(*ast.CallExpr)
			if !is || len(call.Args) == 0 || !folders.MatchString(folder) || levels[named(call)] == nil {
				return true
			}
			switch text := s.text(folder, call.Args[0]); {
			case strings.Trim(text, unknown) != "":
				levels[named(call)][text] = true
			case !slices.Contains([]string{"text", "detourText"}, named(call.Args[0])): // which have logTexts
				t.Errorf("%s: a line of the log cannot be read: %s", file, named(call.Args[0]))
			}
			return true
		})
	}
	for name, value := range s.values {
		text := s.text(path.Dir(name), value)
		if logTexts.MatchString(name) && !levels["Debug"][text] {
			levels["Warn"][text] = true
		}
	}
	serious = slices.Sorted(maps.Keys(merged(levels["Warn"], levels["Error"])))
	return serious, slices.Collect(maps.Keys(merged(levels["Debug"], levels["Info"])))
}

func merged(a, b map[string]bool) map[string]bool {
	maps.Copy(a, b)
	return a
}
