package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

//nolint:paralleltest // changes the environment
func TestLogsAreSilencedUnlessSomebodyReadsThem(t *testing.T) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "TF_LOG") {
			t.Setenv(name, "")
		}
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_SDK_PROTO", "TF_LOG_SDK_FRAMEWORK"} {
		t.Setenv(name, "")
	}
	for _, asked := range []string{"TF_LOG", "TF_LOG_PROVIDER", "TF_LOG_SDK_PROTO"} {
		t.Setenv(asked, "WARN")
		silenceUnreadLogs()
		assert.Empty(t, os.Getenv("TF_LOG_SDK"), asked)
		t.Setenv(asked, "")
	}
	silenceUnreadLogs()
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_SDK_PROTO", "TF_LOG_SDK_FRAMEWORK"} {
		assert.Equal(t, "OFF", os.Getenv(name), name)
	}
}
