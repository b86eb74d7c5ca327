// Package guard keeps an AMQP client alive over messages that it cannot decode.
//
// amqp091-go closes the whole connection over a content header that nests too deep, that holds too
// many entries, that has a value of an unknown type, or that is larger than the negotiated frame_max.
// Brokers accept the former from any publisher, and make the latter themselves: they add x-death to
// headers that were as large as a frame may be. One such message would stop everything behind it.
package guard
