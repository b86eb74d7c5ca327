package retryattachment

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
)

const remedy = "Let the retries finish, then consume or purge what is in the failed queue, and run terraform apply."

var policyUse = entity.PolicyUse{
	At:      path.Root("attach"),
	Why:     "Queues are attached by policy",
	Without: "Without policies, set attach = \"arguments\".",
}

func queueOfTwoPipelines(queue, other string) diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("queue"), "Queue of two pipelines", fmt.Sprintf(
		"Queue %q belongs to the pipeline %q in this configuration as well. "+
			"A queue belongs to one pipeline: remove it from one of the two.",
		queue, other))
}
