package binding

import (
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
)

// unlistable is the error of a binding that makes the management API fail (seen on 3.10.8 and 4.3.6).
func unlistable() diag.Diagnostic {
	return diag.NewAttributeErrorDiagnostic(path.Root("routing_key"), "Routing key with ~ and arguments",
		"RabbitMQ's management API fails on a binding with arguments whose routing key has a ~, and on every list with this binding. "+
			"Leave out the ~ or the arguments.")
}
