package release_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for minReader, want := range map[string]string{
		"0.1": "", "0.1.0": "", "0.0.9": "",
		"0.1.1": "needs release 0.1.1 or later, and this one reads up to 0.1: upgrade",
		"0.10":  "needs release 0.10 or later", "1.0.0": "needs release 1.0.0",
		"": "is not a release", "two": "is not a release", "v0.1": "is not a release",
	} {
		err := release.Check(minReader)
		if want == "" {
			require.NoError(t, err, minReader)
		} else {
			require.ErrorContains(t, err, want, minReader)
		}
	}
}
