// Package console is where a command that changes queues talks to the person who runs it: it asks before it
// begins, shows how far it is, and leaves a record of what it did.
package console
