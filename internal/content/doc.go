// Package content reads and writes the properties in a content header of AMQP 0-9-1, exactly as they are.
//
// What a client library makes of them is not what they were: it drops priority 0 and empty strings, forgets
// which header came first, and cannot read some of what brokers accept. Here a value stays the bytes that it
// is on the wire, of the type that it has there; what is not looked at costs nothing.
package content
