package failed

// Message is a message as it lies in a queue.
type Message struct {
	// Queue is where it lies.
	Queue string
	// Exchange and RoutingKey are those of the delivery: how it came to the queue.
	Exchange, RoutingKey string
	// Redelivered says that it was delivered before.
	Redelivered bool
	// Properties are the flags and the property list of the content header, as they are on the wire.
	Properties []byte
	Body       []byte
}
