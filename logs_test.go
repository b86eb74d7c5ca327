package main

import (
	"os"
	"strings"
	"testing"
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
		if got := os.Getenv("TF_LOG_SDK"); got != "" {
			t.Errorf("with %s, TF_LOG_SDK is %q", asked, got)
		}
		t.Setenv(asked, "")
	}
	silenceUnreadLogs()
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_SDK_PROTO", "TF_LOG_SDK_FRAMEWORK"} {
		if got := os.Getenv(name); got != "OFF" {
			t.Errorf("%s is %q", name, got)
		}
	}
}
