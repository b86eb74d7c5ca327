package cli

// A RuntimeError is what went wrong although configuration and command line are right.
type RuntimeError struct{ Err error }

func (e RuntimeError) Error() string { return e.Err.Error() }

// Unwrap returns what went wrong.
func (e RuntimeError) Unwrap() error { return e.Err }
