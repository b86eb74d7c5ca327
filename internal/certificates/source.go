package certificates

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Source is where a user has a certificate or a key: the name of a file, or the PEM text itself.
type Source struct {
	File, PEM string
	// FileName and PEMName are what errors call them: an attribute, a variable or a flag.
	FileName, PEMName string
}

// Given reports whether there is one.
func (s Source) Given() bool { return s.File != "" || s.PEM != "" }

// Or is the other source if only that one is given.
func (s Source) Or(other Source) Source {
	if s.Given() || !other.Given() {
		return s
	}
	return other
}

// name is what errors call the one that is given.
func (s Source) name() string {
	if s.PEM != "" {
		return s.PEMName
	}
	return s.FileName
}

// check finds what is wrong before anything is read.
func (s Source) check() error {
	switch {
	case s.File != "" && s.PEM != "":
		return fmt.Errorf("%s and %s are both set: keep one of them", s.FileName, s.PEMName)
	case strings.ContainsAny(s.File, "\n\r") || strings.Contains(s.File, "-----"):
		return fmt.Errorf("%s must be the name of a file, and has the contents of one: %s takes those", s.FileName, s.PEMName)
	case s.PEM != "" && !strings.Contains(s.PEM, "-----BEGIN"):
		return fmt.Errorf("%s must be PEM text, which begins with -----BEGIN: %s takes the name of a file", s.PEMName, s.FileName)
	}
	return nil
}

// read returns the PEM text. An error does not quote the name of the file, which may be a key that somebody put in its
// place.
func (s Source) read() ([]byte, error) {
	if s.PEM != "" {
		return []byte(s.PEM), nil
	}
	text, err := os.ReadFile(s.File)
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return nil, fmt.Errorf("%s: the file cannot be read: %w", s.FileName, failed.Err)
	}
	return text, err
}
