package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Formats that commands have in common.
const (
	Table = "table"
	JSON  = "json"
)

// CheckFormat is an error if the value of --output is not one of the known formats.
func CheckFormat(format string, known ...string) error {
	if slices.Contains(known, format) {
		return nil
	}
	return fmt.Errorf("--output %q: must be one of %s", format, strings.Join(known, ", "))
}

// WriteJSON writes a value, and leaves HTML as it is.
func WriteJSON(w io.Writer, value any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(value)
}
