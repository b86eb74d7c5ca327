// Package amqpconn opens AMQP connections to a broker: addresses and credentials, TLS, one broker after
// the other until one serves, and calls that end with their context.
//
// It knows nothing of what the connection is for. Its connections survive messages that the client
// library cannot decode (package guard), bound what waits (package intake), and send many small writes together
// (package coalesce). Others leave the properties of messages encoded (package raw). Those that speak AMQP 1.0 hand over
// messages undecoded (package verbatim).
package amqpconn
