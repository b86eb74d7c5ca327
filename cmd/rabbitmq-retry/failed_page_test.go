package main

import (
	"html"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
)

var commandOnPage = regexp.MustCompile(`<pre class="command">rabbitmq-retry (.*)</pre>`)

// The commands on a page work as printed, and each is about its group alone.
func TestPageOfFailedMessages(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "quorum")
	for _, id := range []string{"1", "order-2", "order-3"} {
		o.park(t, "exhausted", id)
	}
	stock := parked("exhausted", "order-4")
	stock.Headers["dead-letter-error"] = "no stock for order 4"
	o.Publish(t, "", "orders.failed", stock)
	o.holds(t, "orders.failed", 4)
	o.prints(t, exitOK, "failed show orders 1", `{
  "id": "1"
}`)
	file := filepath.Join(t.TempDir(), "orders.html")
	list := "failed list orders -o html --file " + file
	o.says(t, exitOK, list, "4 messages in orders.failed; all put back")
	o.holds(t, "orders.failed", 4)
	info, err := os.Stat(file)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode())
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	page := string(content)
	contains(t, page, "3 × exhausted in orders.created", "no stock for order &lt;n&gt;", "order-4", "4 read of 4")
	lacks(t, page, o.Password)
	o.says(t, exitUsage, list, "exists already")

	commands := commandOnPage.FindAllStringSubmatch(page, -1)
	require.Len(t, commands, 4)
	word := func(i int) string {
		return strings.Replace(html.UnescapeString(commands[i][1]), "--vhost "+o.Vhost, "", 1)
	}
	folder := t.TempDir()
	o.says(t, exitOK, strings.Replace(word(1), "--file ", "--file "+folder+"/", 1), "exported 3 messages")
	o.says(t, exitOK, word(2)+" --yes", "replayed 1 of 1 to orders.created")
	o.holds(t, "orders.created", 1)
	o.holds(t, "orders.failed", 3)
	o.says(t, exitOK, word(2)+" --yes", "0 of 3 messages in orders.failed match")

	for command, want := range map[string]string{
		"failed list orders -o html":                                   "-o html: needs --file",
		"failed list orders --file x":                                  "--file: needs -o html",
		"failed list orders --mask card":                               "--bodies and --mask: need -o html",
		"failed list orders -o html --file x --bodies some":            "--bodies \"some\": must be none, head or all",
		"failed list orders --group exhausted":                         "is not the id of a group",
		"failed list orders -o html --file " + folder + "/none/x.html": "no such file or directory",
	} {
		o.says(t, exitUsage, command, want)
	}
	o.env = with(o.env, cli.EnvURI, "amqp://guest:wrong@127.0.0.1:1")
	o.run(t, exitError, "failed list orders -o html --file "+folder+"/unreachable.html")
	assert.NoFileExists(t, folder+"/unreachable.html")
}
