package translate

import (
	"fmt"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"
)

// deathForm is what the broker writes of a death, as keys and types. The time to live is there if there was one.
var deathForm = []string{
	"ttl uint32", "queue string", "reason translate.symbol", "count uint64", "first-time time.Time", "last-time time.Time",
	"exchange string", "routing-keys translate.array",
}

// translateDeaths makes the header x-death of the broker's annotation. Over one that somebody else wrote the broker
// fails.
func (t *translation) translateDeaths(value any) {
	elements, _ := value.(array)
	deaths := []any{}
	for _, element := range elements {
		d, ok := element.(dict)
		if !ok {
			return
		}
		if !d.isDeath() {
			t.change("annotation", "x-opt-deaths", "not the broker's, left out")
			return
		}
		deaths = append(deaths, d.death())
	}
	if len(deaths) > 0 {
		t.Delivery.Headers["x-death"] = deaths
	}
}

// isDeath reports whether the broker may have written it.
func (d dict) isDeath() bool {
	form := []string{}
	for _, e := range d {
		form = append(form, fmt.Sprintf("%s %T", text(e.key), e.value))
	}
	keys, _ := d.get("routing-keys").(array)
	return (slices.Equal(form, deathForm) || slices.Equal(form, deathForm[1:])) &&
		!slices.ContainsFunc(keys, func(key any) bool { _, ok := key.(string); return !ok })
}

func (d dict) death() amqp.Table {
	count, _ := d.get("count").(uint64)
	at, _ := d.get("first-time").(time.Time)
	routingKeys, _ := d.get("routing-keys").(array)
	death := amqp.Table{
		"count": int64(count), "time": seconds(at), "routing-keys": []any(routingKeys), //nolint:gosec // the broker counts to less
		"reason": text(d.get("reason")), "queue": text(d.get("queue")), "exchange": text(d.get("exchange")),
	}
	if ttl, ok := d.get("ttl").(uint32); ok {
		death["original-expiration"] = text(ttl)
	}
	return death
}
