package failed

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/content"
)

const headerDeath = "x-death"

// maxDeaths are as many entries of x-death as are looked at: the broker has one per queue and reason.
const maxDeaths = 64

// death is an entry of x-death.
type death struct {
	queue, reason, exchange, key string
	at                           time.Time
}

// deaths reads x-death, newest first, but for rejections in the queue that the message lies in: a failed
// queue dead-letters to itself.
func (f fields) deaths(queue string) []death {
	list, ok := f[headerDeath].Array()
	if !ok {
		return nil
	}
	var deaths []death
	for value := range list.All() {
		table, ok := value.Table()
		if d := readDeath(table); ok && d.queue != "" && d.queue != queue {
			deaths = append(deaths, d)
		}
		if len(deaths) == maxDeaths {
			break
		}
	}
	return deaths
}

func readDeath(t content.Table) death {
	f := readFields(t)
	d := death{queue: f.text("queue"), reason: f.text("reason"), exchange: f.text("exchange")}
	d.at, _ = f["time"].Time()
	if keys, ok := f["routing-keys"].Array(); ok {
		key, _ := keys.First()
		d.key, _ = key.Text()
	}
	return d
}
