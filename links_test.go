package main

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Beginnings of absolute links to files of this repository.
const (
	inRegistry = "https://registry.terraform.io/providers/rabbitmq-retry/rabbitmq/latest/docs"
	onGitHub   = "https://github.com/rabbitmq-retry/terraform-provider-rabbitmq/"
	raw        = "https://raw.githubusercontent.com/rabbitmq-retry/terraform-provider-rabbitmq/main/"
)

// Every link to a page or a file of this repository leads there, on GitHub and in both registries.
func TestLinksLeadToFiles(t *testing.T) {
	t.Parallel()
	links, checked := regexp.MustCompile(`\]\(([^)\s]+)\)`), 0
	for _, page := range markdown(t) {
		for _, match := range links.FindAllStringSubmatch(withoutCode(t, page), -1) {
			target, heading, _ := strings.Cut(match[1], "#")
			if target = fileOf(page, target); target == "" {
				continue
			}
			checked++
			switch _, err := os.Stat(target); {
			case err != nil:
				t.Errorf("%s: %s: %v", page, match[1], err)
			case heading != "" && !hasHeading(t, target, heading):
				t.Errorf("%s: %s: no such heading", page, match[1])
			}
			if strings.HasPrefix(page, "docs/") && !isInRegistries(page, match[1]) {
				t.Errorf("%s: %s: a registry does not resolve it", page, match[1])
			}
		}
	}
	assert.GreaterOrEqualf(t, checked, 300, "%d links checked: has their form changed?", checked)
}

// fileOf is the file that a link on a page leads to, "" for another site.
func fileOf(page, target string) string {
	if document, is := strings.CutPrefix(target, inRegistry); is {
		return "docs/" + cmp.Or(strings.TrimPrefix(document, "/"), "index") + ".md"
	}
	if file, is := strings.CutPrefix(target, raw); is {
		file, _, _ = strings.Cut(file, "?")
		return file
	}
	if file, is := strings.CutPrefix(target, onGitHub); is {
		for _, kind := range []string{"blob/main/", "tree/main/"} {
			if file, is := strings.CutPrefix(file, kind); is {
				return file
			}
		}
		return ""
	}
	switch {
	case strings.Contains(target, "://"):
		return ""
	case target == "":
		return page
	}
	return filepath.Join(filepath.Dir(page), target)
}

// isInRegistries reports whether both registries resolve a link. registry.terraform.io takes .md off relative links, but serves the
// overview without a slash at its end, from where they lead elsewhere. search.opentofu.org takes .md off only if a link has no slash.
func isInRegistries(page, link string) bool {
	relative := !strings.Contains(link, "://") && !strings.HasPrefix(link, "#")
	return !relative || !strings.Contains(link, "/") && page != "docs/index.md"
}

func markdown(t *testing.T) (pages []string) {
	t.Helper()
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	for _, folder := range []string{"design", "docs", "examples"} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if filepath.Ext(path) == ".md" {
				pages = append(pages, path)
			}
			return err
		})
		require.NoError(t, err)
	}
	return pages
}

func withoutCode(t *testing.T, page string) string {
	t.Helper()
	content, err := os.ReadFile(page)
	require.NoError(t, err)
	return regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(string(content), "")
}

// hasHeading goes by how GitHub makes an anchor of a heading.
func hasHeading(t *testing.T, page, anchor string) bool {
	t.Helper()
	content := withoutCode(t, page)
	if strings.Contains(content, `<a id="`+anchor+`">`) {
		return true
	}
	for _, match := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(content, -1) {
		text := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(match[1]), "")
		if strings.ReplaceAll(text, " ", "-") == anchor {
			return true
		}
	}
	return false
}
