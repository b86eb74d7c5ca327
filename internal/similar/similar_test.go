package similar_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/similar"
)

func TestSimilarNames(t *testing.T) {
	t.Parallel()
	names := []string{"", "/", "orders.created", "orders.cancelled", "orders.shipped", "mails", "Bills", "q1", "q2", "p4q", "été.créé", "mailt"}
	for misspelt, want := range map[string]string{
		"orders.crated":         "orders.created",
		"order.created":         "orders.created",
		"Orders_Created":        "orders.created",
		"orders.canceled":       "orders.cancelled",
		"oders.shiped":          "orders.shipped",
		"orders.created.failed": "",
		"orders":                "",
		"orders.created":        "", // it is there
		"mail":                  "mails",
		"mailx":                 "mails", // of equals, the first one
		"bill":                  "Bills",
		"q3":                    "", // too short to tell
		"p6.q":                  "",
		"ete.cree":              "",
		"été.cree":              "été.créé",
		"*":                     "",
		"":                      "",
	} {
		for range 3 {
			require.Equal(t, want, similar.To(misspelt, slices.Values(names)), misspelt)
			slices.Reverse(names)
		}
	}
	require.Equal(t, ` (did you mean "mails"?)`, similar.Hint("mail", slices.Values(names)))
	require.Empty(t, similar.Hint("mails", slices.Values(names)))
}

// A plan can look for each of many missing queues among all queues of a large vhost.
func TestManyNames(t *testing.T) {
	t.Parallel()
	names := make([]string, 100_000)
	for i := range names {
		names[i] = fmt.Sprintf("team-%d.service-%d.created", i%100, i)
	}
	began := time.Now()
	require.Equal(t, names[4711], similar.To("team-11.service-4711.crated", slices.Values(names)))
	t.Log(time.Since(began))
}
