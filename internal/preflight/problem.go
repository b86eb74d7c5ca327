package preflight

import "fmt"

// Problem is a reason why a specification cannot work, with its place and its remedy.
type Problem struct {
	Path    Path
	Summary string
	Detail  string
}

// Path leads to an attribute: strings are attribute names, ints are indexes of a list, and MapKeys
// are keys of a map.
type Path []any

// MapKey is a key of a map in a Path.
type MapKey string

func problem(path Path, summary, detail string, args ...any) Problem {
	return Problem{Path: path, Summary: summary, Detail: fmt.Sprintf(detail, args...)}
}
