//go:build bench

package benchworker

import (
	"encoding/json"
	"errors"
	"log"
	"os"
	"testing"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/benchtest"
)

// profileVariable makes this program play the profiled worker's part.
const profileVariable = "BENCHWORKER_PROFILE"

func TestMain(m *testing.M) {
	if run := otherPart(); run != nil {
		if err := run(); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

func otherPart() func() error {
	if pipe, err := benchtest.FromEnvironment(); pipe != nil {
		return func() error { return errors.Join(err, pipe.Run()) }
	}
	if settings := os.Getenv(profileVariable); settings != "" {
		part := &profiled{}
		return func() error { return errors.Join(json.Unmarshal([]byte(settings), part), part.run()) }
	}
	return nil
}
