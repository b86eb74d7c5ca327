package cli

import (
	"fmt"
	"os"
	"strings"
)

// ReadSecret reads a file of one line, and nothing if no file is named.
func ReadSecret(flag, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := readFile(flag, name)
	if err != nil {
		return "", err
	}
	secret := strings.TrimRight(string(data), "\r\n")
	if secret == "" {
		return "", fmt.Errorf("%s: %s is empty", flag, name)
	}
	return secret, nil
}

func readFile(flag, name string) ([]byte, error) {
	if err := MustBeFile(flag, name); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(name) //nolint:gosec // the user says which
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return data, nil
}

// MustBeFile refuses a URI, whose password an error about a missing file would show, and "-", which stands for standard
// output or input elsewhere.
func MustBeFile(flag, name string) error {
	if strings.Contains(name, "://") {
		return fmt.Errorf("%s: must be the name of a file, and is a URI", flag)
	}
	if name == "-" {
		return fmt.Errorf("%s: must be the name of a file, and is -", flag)
	}
	return nil
}
