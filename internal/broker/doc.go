// Package broker talks to RabbitMQ's management API: one client on kept-alive connections, typed
// errors, topology's objects in and out, and the procedures that change a broker without losing a
// message (Apply, and the proof that a queue is empty).
package broker
