package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
)

var manPages = flag.String("man", "", "folder for the manual pages; the time of the page comes from $SOURCE_DATE_EPOCH")

// A release contains a manual page for each command.
func TestManualPages(t *testing.T) {
	t.Parallel()
	folder := *manPages
	if folder == "" {
		folder = t.TempDir()
	}
	root := newRootCommand(func(string) string { return "" })
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Source: "rabbitmq-retry " + release.Version(), Manual: "rabbitmq-retry"}
	if os.Getenv("SOURCE_DATE_EPOCH") == "" {
		now := time.Now()
		header.Date = &now
	}
	require.NoError(t, doc.GenManTree(root, header, folder))
	page, err := os.ReadFile(filepath.Join(folder, "rabbitmq-retry-failed-replay.1"))
	require.NoError(t, err)
	contains(t, string(page), "rabbitmq-retry-failed-replay", "--rate")
}
