package guard

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"

// Parts of a content header, in bytes.
const (
	flagsSize  = 2
	fixedSize  = frame.ContentSize + flagsSize
	lengthSize = 4
)
