package main

import "math"

// What the application has: the pipeline only attaches to the queue.
const (
	exchange   = "shop"
	bindingKey = "order.created.*"
	workQueue  = "orders.created"
)

// always is more often than any message is delivered.
const always = math.MaxInt

// order is a message, and how often the consumer rejects it.
type order struct {
	id         string
	routingKey string
	body       string
	rejections int
	// why the consumer rejects it.
	why string
}

var orders = []order{
	{"order-1001", "order.created.eu", `{"order":1001,"customer":"Ana","items":[{"sku":"TEA-4","n":2}],"total":"17.80"}`, 0, ""},
	{"order-1002", "order.created.us", `{"order":1002,"customer":"Bo","items":[{"sku":"CUP-1","n":6}],"total":"41.40"}`, 2, "stock service unavailable"},
	{"order-1003", "order.created.eu", `{"order":1003,"customer":"Chi","items":[{"sku":"???","n":1}],"total":"9.90"}`, always, "no such article"},
	{"order-1004", "order.created.us", `{"order":1004,"customer":"Dov","items":[{"sku":"TEA-9","n":1}],"total":"12.00"}`, 0, ""},
	{"order-1005", "order.created.eu", `{"order":1005,"customer":"Eva","items":[{"sku":"POT-2","n":1}],"total":"58.00"}`, 2, "payment timed out"},
	{"order-1006", "order.created.us", `{"order":1006,"customer":"Fay","items":[],"total":"0.00"}`, always, "no items"},
}

// endsParked tells whether the order uses up all its attempts.
func (o order) endsParked(maxAttempts int) bool { return o.rejections >= maxAttempts }

// expected is how often the consumer has to see the order.
func (o order) expected(maxAttempts int) int {
	if o.endsParked(maxAttempts) {
		return maxAttempts
	}
	return o.rejections + 1
}
