package entity

import "fmt"

// RefusedRemedy says how a refused queue comes to be empty. A broker goes on waiting for a queue that is gone, or not bound any more.
func RefusedRemedy(exchange string) string {
	return fmt.Sprintf("make room in the queue behind %q that refuses messages: the broker then gives it what is here, within six minutes. "+
		"If that queue or its binding is gone, bind a queue in its place.", exchange)
}
