// Package release says which release a program is, and which data of other releases it reads.
package release

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

	"golang.org/x/mod/semver"
)

// version is set by the linker: -X github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release.version=0.1.0.
var version string

// Version is the program's release, such as "0.1.0". It is the module's version after go install, and "dev" if nothing is known.
func Version() string {
	if version != "" {
		return version
	}
	info, known := debug.ReadBuildInfo()
	if !known || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "dev"
	}
	return strings.TrimPrefix(info.Main.Version, "v")
}

// Reader is the newest min_reader that this release reads. A release that gives data a new meaning raises it to its own number.
const Reader = "0.1"

// NewerError says that only a later release reads some data.
type NewerError struct {
	// Needs is the first release that reads it, "" if that is unknown.
	Needs string
}

// IsNewer reports whether an error says that only a later release reads some data.
func IsNewer(err error) bool {
	var newer *NewerError
	return errors.As(err, &newer)
}

// Error says which release to use.
func (e *NewerError) Error() string {
	if e.Needs == "" {
		return "was written by a newer release than this one, which reads up to " + Reader + ": upgrade"
	}
	return fmt.Sprintf("needs release %s or later, and this one reads up to %s: upgrade", e.Needs, Reader)
}

// Check checks a min_reader: the first release that reads some data, such as "0.2". If that is later than [Reader], it is a *NewerError.
func Check(minReader string) error {
	switch {
	case !semver.IsValid("v" + minReader):
		return fmt.Errorf("has a min_reader %.100q, which is not a release such as %q", minReader, Reader)
	case semver.Compare("v"+minReader, "v"+Reader) > 0:
		return &NewerError{minReader}
	}
	return nil
}
