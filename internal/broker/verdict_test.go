package broker

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// verdict is what the provider decides by.
type verdict struct {
	notFound, unauthorized, unanswered, unreached, proxys, notFormed bool
	remedy                                                           string
}

func verdictOn(a answer, err error) verdict {
	v := verdict{
		notFound: IsNotFound(err), unauthorized: IsUnauthorized(err), unanswered: IsUnanswered(err), unreached: IsUnreached(err), proxys: IsProxys(err),
		notFormed: a.notFormed(),
	}
	for name, remedy := range map[string]string{
		"credentials": setCredentials, "vhost": grantVhost, "access": grantAccess, "permission": setPermissions,
		"endpoint": lookAtEndpoint, "gateway": lookAtGateway, "https": writeHTTPS[1:], "proxy": loginAtProxy[1:], "redirect": "set the endpoint to where it leads",
	} {
		if strings.Contains(err.Error(), remedy) {
			v.remedy += name
		}
	}
	return v
}

// A name decides nothing, whatever it says: each answer means the same for all of them.
func TestNamesDecideNothing(t *testing.T) {
	t.Parallel()
	const queue = "queue '%[1]s' in vhost '%[1]s'"
	reason := func(text string) string { return `{"error":"any","reason":"` + text + `"}` }
	unanswered, permission := verdict{unanswered: true}, verdict{unauthorized: true, remedy: "permission"}
	for kind, c := range map[string]struct {
		status int
		body   string
		want   verdict
	}{
		"other argument": {400, reason("inequivalent arg 'x-dead-letter-exchange' for " + queue + ": received the value '%[1]s' of type 'longstr' " +
			"but current is the value '%[1]s' of type 'longstr'"), verdict{}},
		"missing argument":  {400, reason("inequivalent arg '%[1]s' for " + queue + ": received none but current is the value '3' of type 'long'"), verdict{}},
		"not empty":         {400, reason("406 PRECONDITION_FAILED - " + queue + " not empty"), verdict{}},
		"bad policy":        {400, reason(`Validation failed\n\n[{<<\"%[1]s\">>,<<\"%[1]s\">>}] are not recognised policy settings\n`), verdict{}},
		"list of reasons":   {400, `{"error":"bad_request","reason":["no_such_exchange","%[1]s"]}`, verdict{}},
		"type is off":       {400, reason("Cannot declare a queue 'queue '%[1]s' in vhost '%[1]s'' of type '%[1]s' on node 'rabbit@one': the corresponding feature flag is disabled"), verdict{}},
		"without a word":    {400, "", verdict{}},
		"exchange in doubt": {400, reason("failed to declare exchange '%[1]s' in vhost '%[1]s' because the operation timed out"), unanswered},
		"queue in doubt":    {400, reason("Could not declare quorum " + queue + " on node 'rabbit@one' because the metadata store operation timed out"), unanswered},
		"deletion in doubt": {400, reason("541 INTERNAL_ERROR - failed to delete exchange '%[1]s' in vhost '%[1]s' due to a timeout"), unanswered},
		"purge in doubt":    {400, reason("failed to perform operation on " + queue + " due to timeout"), unanswered},
		"binding in doubt":  {400, reason("Could not add binding due to timeout"), unanswered},
		"node in doubt":     {400, reason("Request to node rabbit@one failed with {'EXIT',{{timeout,{gen_server,call,[<<\\\"%[1]s\\\">>]}},[]}}"), unanswered},
		"crash":             {400, reason("Request to node rabbit@one failed with {'EXIT',{function_clause,[<<\\\"%[1]s\\\">>]}}"), verdict{}},
		"not formed": {
			400, reason("Cannot declare quorum " + queue + " on node 'rabbit@one' with leader on node 'rabbit@one': cluster_not_formed"),
			verdict{notFormed: true},
		},
		"wrong password":          {401, reason("Not_Authorized"), verdict{unauthorized: true, remedy: "credentials"}},
		"wrong password, 3.10":    {401, reason("Login failed"), verdict{unauthorized: true, remedy: "credentials"}},
		"no vhost":                {401, reason("User not authorised to access virtual host"), verdict{unauthorized: true, remedy: "vhost"}},
		"no tag":                  {401, reason("Not management user"), verdict{unauthorized: true, remedy: "access"}},
		"no permission":           {401, reason("Access refused."), permission},
		"no permission, named":    {401, reason("ACCESS_REFUSED - read access to " + queue + " refused for user '%[1]s'"), permission},
		"other refusal":           {401, reason("User '%[1]s' may not do it with '%[1]s'"), verdict{unauthorized: true, remedy: "access"}},
		"forbidden":               {403, reason("Access refused."), verdict{remedy: "permission"}},
		"missing":                 {404, `{"error":"Object Not Found","reason":"Not Found"}`, verdict{notFound: true}},
		"missing, named":          {404, `{"error":"not_found","reason":"no exchange '%[1]s' in vhost '%[1]s'"}`, verdict{notFound: true}},
		"missing elsewhere":       {404, `{"error":"%[1]s","path":"/%[1]s"}`, verdict{remedy: "endpoint"}},
		"no such method":          {405, "", verdict{}},
		"too late":                {408, "", unanswered},
		"too late, elsewhere":     {408, "<p>%[1]s", verdict{unanswered: true, remedy: "endpoint"}},
		"conflict":                {409, reason("%[1]s"), verdict{}},
		"crash of RabbitMQ":       {500, `{"error":"Internal Server Error","reason":"%[1]s"}`, unanswered},
		"unavailable":             {503, reason("%[1]s"), unanswered},
		"bad gateway":             {502, "<p>%[1]s", verdict{unanswered: true, remedy: "gateway"}},
		"unavailable, elsewhere":  {503, "<p>%[1]s", verdict{unanswered: true, remedy: "gateway"}},
		"gateway timeout":         {504, "<p>%[1]s", verdict{unanswered: true, remedy: "gateway"}},
		"bad request, elsewhere":  {400, "<p>%[1]s", verdict{remedy: "endpoint"}},
		"refused by a proxy":      {403, "<p>%[1]s", verdict{remedy: "endpoint"}},
		"unauthorized by a proxy": {401, "<p>%[1]s", verdict{remedy: "endpoint"}},
		"login at the proxy":      {407, "<p>%[1]s", verdict{proxys: true, remedy: "proxy"}},
		"success elsewhere":       {200, "<p>%[1]s", verdict{unanswered: true, remedy: "endpoint"}},
		"redirect":                {302, "<p>%[1]s", verdict{remedy: "redirect"}},
	} {
		for _, name := range []string{
			"plain", "payment-timeout", "timed out", "due to timeout", ": cluster_not_formed", "closed", "refused", "not_found", "access virtual host",
			"Access refused.", "Not_Authorized", "User not authorised to access virtual host", "Object Not Found",
		} {
			body := strings.ReplaceAll(c.body, "%[1]s", name)
			a := answer{method: http.MethodPut, path: path("queues", name, name), status: c.status, location: "http://" + name, content: []byte(body)}
			if got := verdictOn(a, a.failure()); got != c.want {
				t.Errorf("%s, %q: got %+v instead of %+v", kind, name, got, c.want)
			}
		}
	}
}

// The broker refuses a user, another owner's queue and a wrong value in its own words, in which it quotes the name.
func TestNamesDecideNothingOnABroker(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	name, password := b.User(t, "management", "^$", "^$", "^$")
	refused, err := New(Config{Endpoint: b.Endpoint, Username: name, Password: password})
	require.NoError(t, err)
	for _, queue := range []string{"plain", "payment-timeout", "timed out", "refused", "access virtual host", "cluster_not_formed"} {
		b.DeclareQueue(t, queue, "quorum", map[string]any{"x-dead-letter-exchange": queue})
		_, other := c.PutQueue(t.Context(), b.Vhost, queue, topology.Queue{Type: topology.Quorum, Arguments: topology.Arguments{"x-dead-letter-exchange": "other"}})
		missing := c.Bind(t.Context(), b.Vhost, topology.Binding{Source: queue, Destination: queue})
		_, look := refused.HoldsMessage(t.Context(), b.Vhost, queue)
		for _, c := range []struct {
			err                    error
			unauthorized, notFound bool
			want                   string
		}{
			{other, false, false, "inequivalent arg 'x-dead-letter-exchange'"},
			{missing, false, true, "no exchange '" + queue + "'"},
			{look, true, false, fmt.Sprintf("The user needs the permission read on %q", queue)},
			{refused.DeleteQueue(t.Context(), b.Vhost, queue, topology.Quorum), true, false, fmt.Sprintf("The user needs the permission configure on %q", queue)},
		} {
			if c.err == nil || IsUnanswered(c.err) || IsUnauthorized(c.err) != c.unauthorized || IsNotFound(c.err) != c.notFound || !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("%s: %v", queue, c.err)
			}
		}
	}
}

// A host whose name is that of a fault is away like any other.
func TestNameOfAHostDecidesNothing(t *testing.T) {
	t.Parallel()
	c := &Client{base: "http://EOF.invalid:15672"}
	if err := c.unreached(&net.DNSError{Err: "no such host", Name: "EOF.invalid"}); !IsUnreached(err) {
		t.Errorf("got %v", err)
	}
}
