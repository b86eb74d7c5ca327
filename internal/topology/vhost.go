package topology

// Vhost is what a broker reports of a vhost: its objects and what decides how they behave.
type Vhost struct {
	Name string
	Topology
	// OperatorPolicies apply on top of policies, and no policy keeps them away.
	OperatorPolicies map[string]Policy
	// Nodes is how many nodes the cluster has, running or not.
	Nodes int
	// Version of the broker.
	Version Version
}

// Version is a broker's version, as far as behaviour depends on it.
type Version struct{ Major, Minor, Patch int }

// BeforePatch reports whether the version is older than the one given, to the last number.
func (v Version) BeforePatch(major, minor, patch int) bool {
	return v.Before(major, minor) || v.Major == major && v.Minor == minor && v.Patch < patch
}

// Before reports whether the version is older than the one given.
func (v Version) Before(major, minor int) bool {
	return v.Major < major || v.Major == major && v.Minor < minor
}
