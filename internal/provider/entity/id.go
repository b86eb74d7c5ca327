package entity

import (
	"fmt"
	"net/url"
	"strings"
)

// FormatID is the id that an import takes.
func FormatID(parts ...string) string {
	escaped := make([]string, len(parts))
	for i, part := range parts {
		escaped[i] = url.PathEscape(part)
	}
	return strings.Join(escaped, "/")
}

// parseID splits the id that an import takes, parts that are percent-encoded and separated by
// slashes. The names of the parts are for the error.
func parseID(id string, names ...string) ([]string, error) {
	parts := strings.Split(id, "/")
	complete := len(parts) == len(names)
	for i, part := range parts {
		decoded, err := url.PathUnescape(part)
		complete = complete && err == nil && decoded != ""
		parts[i] = decoded
	}
	if !complete {
		return nil, fmt.Errorf("%q is not of the form <%s>, all percent-encoded: the vhost \"/\" is %%2F", id, strings.Join(names, ">/<"))
	}
	return parts, nil
}
