package apply

import "github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"

// Applier carries out changes. It is safe for concurrent use.
type Applier struct {
	client *broker.Client
	times  Times
}

// New makes an applier that changes the client's broker.
func New(client *broker.Client, times Times) *Applier { return &Applier{client, times} }
