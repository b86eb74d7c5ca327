// Package raw is a network connection below an AMQP 0-9-1 client that hands over the properties of messages
// as they are on the wire, and publishes them so.
//
// The client turns headers into values of Go and back, and what it cannot express changes on the way or ends
// the connection. So the only property that it sees of a message is one header, whose value is the encoded
// original; of a message with such a header, the value alone is published.
package raw
