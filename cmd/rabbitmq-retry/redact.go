package main

import (
	"strconv"
	"strings"
)

// redact takes out of an error's text what was written on the command line and may be a URI with a
// password: in the wrong place it is quoted as an unknown command, a file's name or a wrong value.
func redact(text string, args []string) string {
	const hidden = "(not shown: it looks like a URI)"
	for _, arg := range args {
		_, value, _ := strings.Cut(arg, "=")
		for _, secret := range []string{arg, value} {
			if strings.Contains(secret, "://") || strings.Contains(secret, "@") {
				text = strings.ReplaceAll(text, strconv.Quote(secret), hidden)
				text = strings.ReplaceAll(text, secret, hidden)
			}
		}
	}
	return text
}
