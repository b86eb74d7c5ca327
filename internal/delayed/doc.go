// Package delayed is the pure model of a delayed exchange: what it expands to, what of a vhost belongs to it, and how
// long a message waits where. Only levels of powers of two are needed for any delay: a message waits in those whose bit
// is set in the number of its units.
package delayed
