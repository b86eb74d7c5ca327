package problem_test

import (
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
)

func TestPathsArePrintedAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	for want, path := range map[string]problem.Path{
		``: {},
		`pipelines[0].work_queues["a.b"].max_attempts`: {"pipelines", 0, "work_queues", problem.MapKey("a.b"), "max_attempts"},
		`pipelines[1].delays[2]`:                       {"pipelines", 1, "delays", 2},
		`[""]`:                                         {""},
		`work_queues["plain"]`:                         {"work_queues", problem.MapKey("plain")},
		`pipelines["a.b: c \"d\""]`:                    {"pipelines", `a.b: c "d"`},
	} {
		if got := path.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
