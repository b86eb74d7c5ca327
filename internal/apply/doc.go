// Package apply changes a broker without losing a message: it creates, updates and removes the
// objects of one owner, in an order in which nothing is lost, proves that a queue is empty before it
// deletes it, and undoes what it did when it cannot finish.
package apply
