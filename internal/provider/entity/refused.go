package entity

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// RefusedRemedy says how a refused queue comes to be empty. A broker goes on waiting for a queue that is gone, or not bound any more.
func RefusedRemedy(exchange string) string {
	return fmt.Sprintf("make room in the queue behind %q that refuses messages: the broker then gives it what is here, within six minutes. "+
		"If that queue or its binding is gone, bind a queue in its place.", exchange)
}

// FailedQueueRemedy says how a failed queue comes to be empty that others may consume, too.
const FailedQueueRemedy = "rabbitmq-retry failed replays, exports and deletes what is in it, with --queue. " +
	"Stop its consumers, if there are any."

// CannotReadQueues says that the contents of queues are not known.
func CannotReadQueues(err error) diag.Diagnostic {
	return diag.NewErrorDiagnostic("Cannot read whether queues are empty", err.Error())
}
