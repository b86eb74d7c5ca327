package main

import (
	"os"
	"strings"
)

// silenceUnreadLogs keeps the plugin libraries from writing the traces of every step, which they do at any level, where
// Terraform would drop them: unless one of its variables asks for logs. They took a third of a plan's processor time (100
// pipelines: 4.7 s in place of 3.2 s).
func silenceUnreadLogs() {
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "TF_LOG") && value != "" {
			return
		}
	}
	for _, name := range []string{"TF_LOG_SDK", "TF_LOG_SDK_PROTO", "TF_LOG_SDK_FRAMEWORK"} {
		_ = os.Setenv(name, "OFF") // fails for impossible names only
	}
}
