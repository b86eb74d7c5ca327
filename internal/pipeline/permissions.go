package pipeline

// Permissions are the three patterns of a broker user's permissions in a vhost.
type Permissions struct {
	Configure string
	Write     string
	Read      string
}

// WorkerPermissions are the least that the sidecar's user needs. The default exchange
// (amq.default) is written only to save messages whose work queue lost its binding.
func WorkerPermissions(n Names) Permissions {
	return Permissions{
		Configure: "^$",
		Write:     exactPattern([]string{"amq.default", n.FailedExchange(), n.RetryExchange(), n.ReturnExchange()}),
		Read:      exactPattern([]string{n.Inbox()}),
	}
}
