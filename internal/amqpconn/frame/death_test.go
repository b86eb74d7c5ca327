package frame_test

import (
	"strings"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/frame"
)

// An x-death that RabbitMQ 3.10 cannot read (rabbit_dead_letter) would end the dead-lettering of the whole node.
func TestUnreadableDeaths(t *testing.T) {
	t.Parallel()
	const keys = "\x0crouting-keysA\x00\x00\x00\x00"
	deaths := func(elements ...string) string { return "\x07x-deathA" + long(strings.Join(elements, "")) }
	death := func(fields ...string) string { return "F" + long(strings.Join(fields, "")) }
	const one, more = "\x05countl\x00\x00\x00\x00\x00\x00\x00\x01", "\x04moreV"
	for name, c := range map[string]struct {
		headers    string
		unreadable bool
	}{
		"none":                        {more, false},
		"the broker's":                {deaths(death(one, keys), death(one, keys)), false},
		"without a count":             {deaths(death(keys)), false},
		"an empty list":               {deaths(), false},
		"a text, which is replaced":   {"\x07x-deathS" + long("A"), false},
		"a number":                    {deaths("I1234"), true},
		"a number after the broker's": {deaths(death(one, keys), "I1234"), true},
		"a list":                      {deaths("A" + long("")), true},
		"nothing":                     {deaths("V"), true},
		"a count that is a text":      {deaths(death("\x05countS"+long("1"), keys)), true},
		"a count with a fraction":     {deaths(death("\x05countd12345678", keys)), true},
		"without routing keys":        {deaths(death(one)), true},
		"a routing key":               {deaths(death(one, "\x0crouting-keysS"+long("k"))), true},
		"twice, the first one counts": {deaths("V") + deaths(death(one, keys)), true},
		"twice, the last one does not": {
			deaths(death(one, keys)) + deaths("V", "V"), false,
		},
		"in another header": {"\x04moreF" + long(deaths("V")), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, headers := range []string{c.headers + more, more + c.headers} {
				d := deliver(t, true, 7, contentHeader(flags, properties(headers)))[0]
				_, kept := d.Headers["more"]
				if frame.HasUnreadableDeath(d.Headers) != c.unreadable || frame.Undecodable(d.Headers) != nil || !kept || d.MessageId != "id" {
					t.Errorf("delivery %+v", d)
				}
			}
			for _, poison := range []string{"deep table", "deep list", "many in a table", "many in a list", "larger than frame", "unknown type"} {
				d := deliver(t, true, 1<<20, contentHeader(flags, properties(c.headers+poisons[poison])))[0]
				if frame.HasUnreadableDeath(d.Headers) != c.unreadable || frame.Undecodable(d.Headers) == nil {
					t.Errorf("%s: headers %v", poison, d.Headers)
				}
			}
		})
	}
}

// Headers that are too large to search can have any x-death.
func TestHeadersThatAreNotSearchedHaveAnUnreadableDeath(t *testing.T) {
	t.Parallel()
	d := deliver(t, true, 1<<20, contentHeader(flags, properties("\x01kS"+long(strings.Repeat("x", 1<<20)))))[0]
	if !frame.HasUnreadableDeath(d.Headers) || frame.Undecodable(d.Headers) == nil || d.MessageId != "id" {
		t.Errorf("delivery %+v", d)
	}
}
