// Package apply changes a broker without losing a message. A pure function turns a Change into steps,
// each with what it acts on and what becomes of the change if it fails (plan_*.go). An execution carries
// them out one after another, remembers how to undo them, and proves that queues are empty before they
// are deleted (execute.go).
package apply
