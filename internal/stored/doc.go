// Package stored reads and writes what an owner of objects keeps on the broker about itself, in arguments of bindings: its
// definition, and notes of bindings of others that it has deleted for a while.
package stored
