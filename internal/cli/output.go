package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Formats that several commands share.
const (
	Table = "table"
	JSON  = "json"
)

// CheckFormat returns an error if the value of --output is not a known format.
func CheckFormat(format string, known ...string) error {
	if slices.Contains(known, format) {
		return nil
	}
	return fmt.Errorf("--output %q: must be one of %s", format, strings.Join(known, ", "))
}

// WriteJSON writes a value as JSON, without escapes for HTML.
func WriteJSON(w io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(value)
}
