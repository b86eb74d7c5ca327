// Package failed reads the messages of a failed queue, and says what to do with them: which are meant, how
// they are listed, and what is published when they are replayed.
//
// It is pure: encoded properties go in and come out. A message may have been parked by a worker, by a broker
// itself, or by the libraries of other systems; whatever it holds, reading it never fails.
package failed
