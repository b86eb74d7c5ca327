// Package broker talks to RabbitMQ's management API: one client on kept-alive connections, typed
// errors, listings, and topology's objects in and out, one request per write. It decides nothing:
// in which order objects change, and what has to be proved before, is internal/apply's.
package broker
