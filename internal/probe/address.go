package probe

import (
	"errors"
	"net"
	"strconv"
	"strings"
)

const loopback = "127.0.0.1"

// errAddress says how to write an address. It does not quote what is none: that may be anything.
var errAddress = errors.New("is not an address: write a port, such as 9419, to listen on this machine's loopback address alone, " +
	"or host:port, such as 0.0.0.0:9419, to be reached from elsewhere")

// ParseAddress reads where to listen. Without a host that is the loopback address: what a worker tells
// of itself needs no password.
func ParseAddress(address string) (string, error) {
	host, port := "", address
	if strings.Contains(address, ":") {
		var err error
		if host, port, err = net.SplitHostPort(address); err != nil {
			return "", errAddress
		}
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil || strings.ContainsAny(host, "/@") {
		return "", errAddress
	}
	if host == "" {
		host = loopback
	}
	return net.JoinHostPort(host, port), nil
}
