// Package preflight finds every reason why a configuration cannot work before anything is applied:
// first by itself, then against a live vhost. Each reason comes with the path of the attribute and the
// remedy, as HCL to paste where there is one.
package preflight
