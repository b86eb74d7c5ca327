package retrypipeline_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
)

// badInputs are pipelines in one configuration that each fail to be planned for a reason of their own.
type badInputs struct {
	vhost  string
	config string
	says   map[string]string
}

// add adds a pipeline and what its error says.
func (in *badInputs) add(name, pipeline, lines, says string) {
	in.config += fmt.Sprintf("resource \"rabbitmq_retry_pipeline\" %q {\n  name = %q\n  vhost = %q\n  %s\n}\n", label(name), pipeline, in.vhost, lines)
	if in.says == nil {
		in.says = map[string]string{}
	}
	in.says[name] = says
}

// label turns a name into one that HCL takes.
func label(name string) string { return regexp.MustCompile(`\W+`).ReplaceAllString(name, "_") }

// fail plans once, and fails the subtest of each pipeline of which the plan does not say what it shall.
func (in *badInputs) fail(t *testing.T) {
	t.Helper()
	acctest.Require(t)
	var printed string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(acctest.Times()),
		ErrorCheck:               func(err error) error { printed = err.Error(); return nil },
		Steps:                    []resource.TestStep{{Config: in.config, PlanOnly: true}},
	})
	found := map[string][]string{}
	for _, text := range strings.Split(printed, "\nError: ")[1:] {
		if at := withResource.FindStringSubmatch(text); at != nil {
			found[at[1]] = append(found[at[1]], text)
		}
	}
	for name, want := range in.says {
		t.Run(name, func(t *testing.T) {
			if errors := found[label(name)]; !slices.ContainsFunc(errors, says(want).MatchString) {
				t.Errorf("got %q, want one that says %q", errors, want)
			}
		})
	}
}

var withResource = regexp.MustCompile(`with rabbitmq_retry_pipeline\.(\w+),`)
