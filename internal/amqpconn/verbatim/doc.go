// Package verbatim is a network connection below an AMQP 1.0 client that hands over messages as they are on
// the wire.
//
// The client decodes what it receives, and detaches from the queue over types that it does not know, which
// brokers pass on. So each message reaches it as an opaque body instead: the bytes of all sections of the
// original are the data of the message.
package verbatim
