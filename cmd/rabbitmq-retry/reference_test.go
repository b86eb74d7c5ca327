package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/golden"
)

// The page has every command and every flag, as --help shows them.
func TestReferenceOfCommands(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	addCommand(&text, newRootCommand(func(string) string { return "" }), 2)
	golden.Section(t, "commands", "commands", text.String())
}

func addCommand(text *strings.Builder, c *cobra.Command, depth int) {
	fmt.Fprintf(text, "%s %s\n\n", strings.Repeat("#", depth), c.CommandPath())
	if c.HasSubCommands() {
		fmt.Fprintf(text, "```text\n%s\n```\n\n", strings.TrimSpace(c.Long))
	} else {
		var help strings.Builder
		c.InitDefaultHelpFlag()
		c.SetOut(&help)
		_ = c.Help()
		fmt.Fprintf(text, "```text\n%s\n```\n\n", strings.TrimSpace(help.String()))
	}
	for _, sub := range c.Commands() {
		addCommand(text, sub, depth+1)
	}
}
