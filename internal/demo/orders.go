package main

import "math"

// The objects of the application: the pipeline only attaches to the queue.
const (
	exchange   = "shop"
	bindingKey = "order.created.*"
	workQueue  = "orders.created"
)

// always is more often than any message is delivered.
const always = math.MaxInt

// order is a message, with the number of times that the consumer rejects it.
type order struct {
	id         string
	routingKey string
	body       string
	rejections int
	// why is the reason for the rejection.
	why string
}

// fixed is the order whose article becomes available in the end.
var fixed = orders[2]

var orders = []order{
	{
		id: "order-1001", routingKey: "order.created.eu",
		body: `{"order":1001,"customer":"Ana","items":[{"sku":"TEA-4","n":2}],"total":"17.80"}`,
	},
	{
		id: "order-1002", routingKey: "order.created.us",
		body:       `{"order":1002,"customer":"Bo","items":[{"sku":"CUP-1","n":6}],"total":"41.40"}`,
		rejections: 2, why: "stock service unavailable",
	},
	{
		id: "order-1003", routingKey: "order.created.eu",
		body:       `{"order":1003,"customer":"Chi","items":[{"sku":"???","n":1}],"total":"9.90"}`,
		rejections: always, why: "no such article",
	},
	{
		id: "order-1004", routingKey: "order.created.us",
		body: `{"order":1004,"customer":"Dov","items":[{"sku":"TEA-9","n":1}],"total":"12.00"}`,
	},
	{
		id: "order-1005", routingKey: "order.created.eu",
		body:       `{"order":1005,"customer":"Eva","items":[{"sku":"POT-2","n":1}],"total":"58.00"}`,
		rejections: 2, why: "payment timed out",
	},
	{
		id: "order-1006", routingKey: "order.created.us",
		body:       `{"order":1006,"customer":"Fay","items":[],"total":"0.00"}`,
		rejections: always, why: "no items",
	},
}

// endsParked reports whether the order uses up all its attempts.
func (o order) endsParked(maxAttempts int) bool { return o.rejections >= maxAttempts }

// expected is how often the order must be delivered.
func (o order) expected(maxAttempts int) int {
	if o.endsParked(maxAttempts) {
		return maxAttempts
	}
	return o.rejections + 1
}
