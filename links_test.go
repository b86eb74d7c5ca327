package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every relative link leads to a file that is there, and to a heading of it. Registries take a page's name without .md,
// GitHub does not.
func TestLinksLeadToFiles(t *testing.T) {
	t.Parallel()
	links, checked := regexp.MustCompile(`\]\(([^)\s]+)\)`), 0
	for _, page := range markdown(t) {
		for _, match := range links.FindAllStringSubmatch(withoutCode(t, page), -1) {
			file, heading, _ := strings.Cut(match[1], "#")
			if strings.Contains(match[1], "://") {
				continue
			}
			checked++
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			switch _, err := os.Stat(target); {
			case err != nil:
				t.Errorf("%s: %s: %v", page, match[1], err)
			case heading != "" && !hasHeading(t, target, heading):
				t.Errorf("%s: %s: no such heading", page, match[1])
			}
		}
	}
	assert.GreaterOrEqualf(t, checked, 80, "%d links checked: has their form changed?", checked)
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
