package retrypipeline_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// The plan of a pipeline fits on a page, operator_permissions aside, and says once for all what consumers must call.
func TestAcc_PlanIsReadable(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	tf := newCLI(t)
	var config strings.Builder
	for _, name := range []string{"orders", "mails", "events"} {
		tf.DeclareQueue(t, name+".created", "quorum", nil)
		_, _ = fmt.Fprintf(&config, "resource \"rabbitmq_retry_pipeline\" %[1]q {\n  name = %[1]q\n  vhost = %[2]q\n  "+
			"delays = [\"5s\", \"30s\", \"5m\"]\n  work_queues = { \"%[1]s.created\" = {} }\n}\n", name, tf.Vhost)
	}
	tf.configure(t, config.String())
	output, code := tf.printed(t, "plan", "-input=false")
	if code != 0 {
		t.Fatalf("the plan ends with %d:\n%s", code, output)
	}
	for _, name := range []string{"orders", "mails", "events"} {
		_, block, _ := strings.Cut(output, "rabbitmq_retry_pipeline."+name+" will be created\n")
		block, _, found := strings.Cut(block, "\n    }\n")
		shown := regexp.MustCompile(`(?s)\n      \+ operator_permissions .*?\n        }`).ReplaceAllString(block, "")
		if lines := strings.Count(shown, "\n") + 3; !found || len(shown) == len(block) || lines > 80 { // the heading, the last line and the brace
			t.Errorf("the plan of %s has %d lines:\n%s", name, lines, shown)
		}
	}
	_, warning, _ := strings.Cut(output, "Consumers must call basic.nack(requeue=false)\n")
	paragraphs := strings.Split(strings.ReplaceAll(warning, "│", ""), "\n\n")
	if strings.Count(output, "requeue=true") != 1 || len(paragraphs) < 2 || strings.Count(strings.TrimSpace(paragraphs[1]), "\n") > 1 {
		t.Errorf("what consumers must call is not said once, in two lines:\n%s", output)
	}
	tf.apply(t)
	tf.configure(t, strings.ReplaceAll(config.String(), "5m", "6m"))
	if output := tf.plan(t); strings.Contains(output, "Consumers must call") {
		t.Errorf("what consumers must call is said again:\n%s", output)
	}
}
