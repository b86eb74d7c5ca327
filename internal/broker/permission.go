package broker

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// grantAccess is for requests of which nothing else is known.
const grantAccess = "The user is known, but lacks a tag, or a permission in the vhost: " +
	"see rabbitmqctl set_user_tags and set_permissions, which replace what the user has"

// grantVhost is for users without any permission in the vhost.
const grantVhost = "The user has no permissions in the vhost: see rabbitmqctl set_permissions"

// lacking says which permission a request needs that the broker refuses a known user.
func lacking(method, path string) string {
	parts := pathParts(path)
	switch {
	case len(parts) < 2:
		return grantAccess
	case method == http.MethodGet:
		return fmt.Sprintf("The user needs the tag management, and any permission in the vhost %q, to see what is in it", parts[1])
	case parts[0] == "policies":
		return fmt.Sprintf("The user needs the tag policymaker, and any permission in the vhost %q", parts[1])
	case parts[0] == "bindings" && len(parts) >= 6:
		return fmt.Sprintf("The user needs the permission read on %q and write on %q in the vhost %q; %s",
			parts[3], parts[5], parts[1], setPermissions)
	case len(parts) < 3:
		return grantAccess
	case parts[len(parts)-1] == "contents", parts[len(parts)-1] == "get":
		return fmt.Sprintf("The user needs the permission read on %q in the vhost %q; %s", parts[2], parts[1], setPermissions)
	case parts[0] == "queues" && method == http.MethodPut:
		return fmt.Sprintf("The user needs the permission configure on %q in the vhost %q and, since the queue may name a dead-letter exchange, "+
			"read on it and write on that exchange; %s", parts[2], parts[1], setPermissions)
	default:
		return fmt.Sprintf("The user needs the permission configure on %q in the vhost %q; %s", parts[2], parts[1], setPermissions)
	}
}

const setPermissions = "rabbitmqctl set_permissions replaces all three patterns of a user, " +
	"so write those that the user has, too (rabbitmqctl list_user_permissions)"

// pathParts splits a path below /api into the names that it was made of.
func pathParts(path string) []string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/api/"), "?")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if name, err := url.PathUnescape(part); err == nil {
			parts[i] = name
		}
	}
	return parts
}
