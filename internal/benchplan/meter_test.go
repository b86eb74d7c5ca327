//go:build bench

package benchplan

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// meter stands between Terraform and a provider, and notes the processor time of each of the provider's processes.
type meter struct{ provider, notes string }

// meterScript runs the provider and notes, as the shell does for its children, what it took: two lines, of which the
// second is the children's user and system time. A process has a file of its own.
const meterScript = `#!/bin/sh
%q "$@"
code=$?
times > %q/$$
exit $code
`

func newMeter(t *testing.T, provider string) *meter {
	t.Helper()
	m := &meter{t.TempDir(), t.TempDir()}
	name := "terraform-provider-rabbitmq"
	script := fmt.Sprintf(meterScript, filepath.Join(provider, name), m.notes)
	require.NoError(t, os.WriteFile(filepath.Join(m.provider, name), []byte(script), 0o700))
	return m
}

// take returns the processor time, user and system, of the processes that ended since it was last called.
func (m *meter) take(t *testing.T) time.Duration {
	t.Helper()
	notes, err := filepath.Glob(filepath.Join(m.notes, "*"))
	if err != nil || len(notes) == 0 {
		t.Fatalf("no process of the provider has ended: %v", err)
	}
	var sum time.Duration
	for _, note := range notes {
		text, err := os.ReadFile(note)
		if err == nil {
			err = os.Remove(note)
		}
		require.NoError(t, err)
		sum += childrenTime(t, string(text))
	}
	return sum
}

// childrenTime reads what the shell's times prints, such as "0m0.01s 0m0.00s" and a second such line.
func childrenTime(t *testing.T, printed string) (sum time.Duration) {
	t.Helper()
	fields := strings.Fields(printed)
	for _, field := range fields[len(fields)/2:] {
		taken, err := time.ParseDuration(field)
		require.NoError(t, err)
		sum += taken
	}
	return sum
}
