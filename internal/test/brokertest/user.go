package brokertest

import (
	"net/http"
	"net/url"
	"testing"
)

// User makes a user with these tags, such as "management" or "policymaker,monitoring". The permissions are regular
// expressions in the virtual host. The user is deleted when the test ends.
func (b *Broker) User(t testing.TB, tags, configure, write, read string) (name, password string) {
	t.Helper()
	name, password = unique("user"), unique("password")
	path := "/api/users/" + url.PathEscape(name)
	t.Cleanup(func() { b.Call(t, http.MethodDelete, path, nil, nil) })
	b.Call(t, http.MethodPut, path, map[string]string{"password": password, "tags": tags}, nil)
	b.permit(t, name, configure, write, read)
	return name, password
}

func (b *Broker) permit(t testing.TB, user, configure, write, read string) {
	t.Helper()
	b.Call(t, http.MethodPut, b.Path("permissions", user), map[string]string{"configure": configure, "write": write, "read": read}, nil)
}
