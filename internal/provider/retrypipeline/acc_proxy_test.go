package retrypipeline_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
)

// A proxy that decodes slashes makes the vhost "/" look like all vhosts, and policies unreachable. Both are errors that
// say so, and nothing stays behind.
func TestAccEveryRelease_ProxyThatDecodesPaths(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	throughProxy := fmt.Sprintf("provider \"rabbitmq\" {\n  endpoint = %q\n}\n", b.Decoding(t))
	config := throughProxy + pipelineHCL(b, `delays = ["5s"]`)
	acceptQuickly(t, b,
		resource.TestStep{
			Config: strings.Replace(config, fmt.Sprintf("vhost = %q", b.Vhost), `vhost = "/"`, 1), PlanOnly: true,
			ExpectError: says(`Vhost "/" could not be listed.*the list has an object of the vhost .*must not decode %2F`),
		},
		resource.TestStep{Config: config, ExpectError: says(`write policy .*%2F is decoded on the way.*nginx`)},
	)
}
