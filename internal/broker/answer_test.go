package broker

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/certificates"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

const page = "<html>\n<head><title>nginx</title></head></html>"

// RabbitMQ's own words identify a missing object.
func TestBrokerSaysWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c := newClient(t, b, b.Endpoint)
	toQueue, toExchange := topology.Binding{Source: "none", Destination: "none"}, topology.Binding{Source: "none", Destination: "no/ne", ToExchange: true}
	paths := map[string][]string{
		http.MethodDelete: {
			path("exchanges", b.Vhost, "no/ne"), path("queues", b.Vhost, "no/ne"), path("queues", b.Vhost, "none") + "?if-empty=true",
			path("policies", b.Vhost, "no/ne"), bindingsPath(b.Vhost, toQueue) + "/~", bindingsPath(b.Vhost, toExchange) + "/no%2Fne",
		},
		http.MethodGet: {path("queues", b.Vhost, "no/ne")},
	}
	for _, kind := range []string{"exchanges", "queues", "bindings", "policies", "operator-policies"} {
		paths[http.MethodGet] = append(paths[http.MethodGet], path(kind, b.Vhost+"/none"))
	}
	for method, missing := range paths {
		for _, address := range missing {
			if _, err := c.do(t.Context(), method, address, nil, nil); !IsNotFound(err) {
				t.Errorf("%s %s: got %v", method, address, err)
			}
		}
	}
	if err := c.Bind(t.Context(), b.Vhost, toQueue); !IsNotFound(err) {
		t.Errorf("binding: got %v", err)
	}
	if _, err := c.PutExchange(t.Context(), b.Vhost+"/none", "x", topology.Exchange{Type: "fanout"}); !IsNotFound(err) {
		t.Errorf("vhost: got %v", err)
	}
	require.NoError(t, c.requirePathsKept(t.Context()))
	refused, err := New(Config{Endpoint: b.Endpoint, Username: b.Username, Password: "wrong"})
	require.NoError(t, err)
	if _, err := refused.User(t.Context()); !IsUnauthorized(err) {
		t.Errorf("user: got %v", err)
	}
}

// Brokers answer 401 to unknown users and wrong passwords, and with other words to missing tags and permissions. Before
// 4.3 they escape quoted text. From 4.3.3 on, a vhost that the user cannot see does not exist.
func TestRefusalsSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	withoutTags, password := b.User(t, "", "", "", "")
	elsewhere, anotherPassword := b.User(t, "management", "", "", "")
	b.Call(t, http.MethodDelete, b.Path("permissions", elsewhere), nil, nil)
	mayNotConfigure, itsPassword := b.User(t, "management", "^$", "^$", "^$")
	hidden, wantHidden := IsUnauthorized, "The user has no permissions in the vhost"
	if b.VersionAtLeast("4.3.3") {
		hidden, wantHidden = IsNotFound, "404 Not Found"
	}
	for name, c := range map[string]struct {
		user, password string
		is             func(error) bool
		want           string
	}{
		"wrong password": {b.Username, "wrong", IsUnauthorized, "set username and password"},
		"unknown user":   {"nobody of that name", "wrong", IsUnauthorized, "set username and password"},
		"no tag":         {withoutTags, password, IsUnauthorized, "The user needs the tag management: see rabbitmqctl set_user_tags"},
		"no vhost":       {elsewhere, anotherPassword, hidden, wantHidden},
		"no permission":  {mayNotConfigure, itsPassword, IsUnauthorized, `configure on "x" in the vhost`},
	} {
		client, err := New(Config{Endpoint: b.Endpoint, Username: c.user, Password: c.password})
		require.NoError(t, err)
		_, err = client.PutExchange(t.Context(), b.Vhost, "x", topology.Exchange{Type: "fanout"})
		if !c.is(err) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		require.NotContains(t, err.Error(), "..", name)
	}
	client, err := New(Config{Endpoint: b.Endpoint, Username: b.Username, Password: b.Password})
	require.NoError(t, err)
	_, err = client.PutPolicy(t.Context(), b.Vhost, "p", topology.Policy{Pattern: "x", ApplyTo: "queues", Definition: topology.Arguments{"nonsense": "a"}})
	if err == nil || !strings.HasSuffix(err.Error(), `[{<<"nonsense">>,<<"a">>}] are not recognised policy settings`) {
		t.Errorf("%v", err)
	}
}

// A proxy, or an ingress without a backend, does not know which objects exist.
func TestNotFoundOfAProxyIsNone(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		page, "", "404 page not found\n", "{}", `[]`, `"error"`, `{"message":"no Route matched with those values"}`,
		`{"status":404,"error":"Not Found","path":"/api"}`, `{"error":{"reason":"none"},"reason":"none"}`, `{"error":"no backend","reason":"none"}`,
	} {
		err := answer{method: http.MethodDelete, path: "/api/queues/v/q", status: http.StatusNotFound, content: []byte(body)}.failure()
		if IsNotFound(err) || IsUnanswered(err) || !strings.Contains(err.Error(), "not RabbitMQ's answer") || !strings.Contains(err.Error(), "endpoint") {
			t.Errorf("%s: got %v", body, err)
		}
	}
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, _ http.Handler) { http.NotFound(w, r) }))
	_, read := c.Queue(t.Context(), b.Vhost, "q")
	_, listed := c.List(t.Context(), b.Vhost)
	for what, err := range map[string]error{
		"read": read, "list": listed, "delete": c.DeleteQueue(t.Context(), b.Vhost, "q", topology.Quorum),
		"unbind": c.Unbind(t.Context(), b.Vhost, topology.Binding{Source: "x", Destination: "q", PropertiesKey: "~"}),
	} {
		if err == nil || IsNotFound(err) || !strings.Contains(err.Error(), "404 page not found") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

// Only the broker can report that an object was written or exists.
func TestSuccessOfAProxyIsNone(t *testing.T) {
	t.Parallel()
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete} {
		for _, a := range []answer{{status: http.StatusOK}, {status: http.StatusOK, content: []byte(page)}, {status: http.StatusCreated, content: []byte(page)}} {
			a.method = method
			if err := a.failure(); !IsUnanswered(err) {
				t.Errorf("%s, %d: got %v", method, a.status, err)
			}
		}
	}
	for _, body := range []string{page, "", "null", "[]", `[{"name":"q"}] more`, `{"login":"required"}`} {
		b := brokertest.New(t)
		c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { _, _ = fmt.Fprint(w, body) }))
		_, user := c.User(t.Context())
		_, queue := c.Queue(t.Context(), b.Vhost, "q")
		_, list := c.List(t.Context(), b.Vhost)
		if body == "[]" {
			list = user // an empty vhost
		}
		for what, err := range map[string]error{"user": user, "queue": queue, "list": list} {
			require.ErrorContainsf(t, err, "not RabbitMQ's answer", "%s: %s", body, what)
		}
	}
}

// Reads are repeated, and the error says what to check. Whether a write took effect is unknown.
func TestGatewayThatDoesNotReachTheBroker(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			t.Parallel()
			var reads, writes atomic.Int32
			b := brokertest.New(t)
			c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
				if r.Method == http.MethodGet {
					reads.Add(1)
				} else {
					writes.Add(1)
				}
				http.Error(w, page, status)
			}))
			if _, err := c.Queue(t.Context(), b.Vhost, "q"); err == nil || reads.Load() != 5 || !strings.Contains(err.Error(), "Check that RabbitMQ runs") {
				t.Errorf("%d reads: %v", reads.Load(), err)
			}
			if err := c.DeletePolicy(t.Context(), b.Vhost, "p"); !IsUnanswered(err) || writes.Load() != 1 {
				t.Errorf("%d writes: %v", writes.Load(), err)
			}
		})
	}
}

// A port that hangs up can be one of a broker that restarts, so reads are repeated, but not once more by each list. A port that
// speaks another protocol is asked once.
func TestPortOfAnotherProtocol(t *testing.T) {
	t.Parallel()
	for greeting, want := range map[string]int32{"": 5, "AMQP\x00\x00\x09\x01": 1, "HTTP/1.1 400 Bad Request\r\n\r\n": 1} {
		for _, scheme := range []string{"http", "https"} {
			if scheme == "http" && greeting != "" && greeting[0] == 'H' {
				continue // this is an answer
			}
			t.Run(scheme+" "+greeting, func(t *testing.T) {
				t.Parallel()
				var asked atomic.Int32
				address := brokertest.Listen(t, func(conn net.Conn) {
					asked.Add(1)
					_, _ = conn.Read(make([]byte, 1024))
					_, _ = conn.Write([]byte(greeting))
					_ = conn.Close()
				})
				c, err := New(Config{Endpoint: scheme + "://" + address, Username: "guest", Password: "guest"})
				require.NoError(t, err)
				_, err = c.User(t.Context())
				if err == nil || asked.Load() != want {
					t.Errorf("asked %d times: %v", asked.Load(), err)
				}
				asked.Store(0)
				_, err = c.List(t.Context(), "/")
				if err == nil || asked.Load() != want {
					t.Errorf("a list asked %d times: %v", asked.Load(), err)
				}
			})
		}
	}
}

// An answer that breaks off is no answer. A read is repeated, and the outcome of a write is unknown.
func TestAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	var reads, writes atomic.Int32
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodGet && reads.Add(1) > 2 {
			api.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
		w.Header().Set("Content-Length", "100")
		_, _ = fmt.Fprint(w, `{"name":"`)
	}))
	if user, err := c.User(t.Context()); err != nil || user.Name != b.Username || reads.Load() != 4 {
		t.Errorf("%d reads: %+v, %v", reads.Load(), user, err)
	}
	if err := c.DeletePolicy(t.Context(), b.Vhost, "p"); !IsUnanswered(err) || writes.Load() != 1 {
		t.Errorf("%d writes: %v", writes.Load(), err)
	}
}

// A read that hangs is repeated once. Then the server accepts connections without answering, which is an error.
func TestReadThatHangs(t *testing.T) {
	t.Parallel()
	var reads atomic.Int32
	b := brokertest.New(t)
	c := newClient(t, b, b.Behind(t, func(_ http.ResponseWriter, r *http.Request, _ http.Handler) {
		reads.Add(1)
		<-r.Context().Done()
	}))
	err := c.get(withTimeout(t.Context(), 200*time.Millisecond), path("whoami"), &struct{}{})
	if err == nil || reads.Load() != maxTimeouts || !strings.Contains(err.Error(), "check that RabbitMQ runs") {
		t.Errorf("%d reads: %v", reads.Load(), err)
	}
}

// A list has more time, the more queues the broker has. Its error says how many, and what helps.
func TestListHasTimeForAllQueues(t *testing.T) {
	t.Parallel()
	for queues, want := range map[int]time.Duration{0: 40 * time.Second, 20_000: 4 * time.Minute, 100_000: 5 * time.Minute} {
		b := brokertest.New(t)
		c := newClient(t, b, b.Behind(t, func(w http.ResponseWriter, r *http.Request, to http.Handler) {
			if !strings.HasPrefix(r.URL.Path, "/api/overview") {
				to.ServeHTTP(w, r)
				return
			}
			_, _ = fmt.Fprintf(w, `{"rabbitmq_version": "4.3.6", "product_name": "RabbitMQ", "object_totals": {"queues": %d}}`, queues)
		}))
		got := c.listTimeout(t.Context())
		require.Equal(t, want, got)
		said := c.unreached(withTimeout(t.Context(), got), context.DeadlineExceeded).Error()
		require.Equal(t, queues > 0, strings.Contains(said, fmt.Sprintf("the broker has %d queues", queues)), said)
	}
}

// A broker ends a request that takes longer than its own timeout. A connection that breaks off earlier is something else.
func TestBrokersOwnTimeout(t *testing.T) {
	t.Parallel()
	for after, want := range map[time.Duration]string{time.Minute: "idle_timeout", time.Second: "begin the endpoint with https://"} {
		synctest.Test(t, func(t *testing.T) {
			c, attempts := &Client{base: "http://localhost"}, 0
			c.http = repeating(&http.Client{Transport: whole{breakingOff(func() {
				attempts++
				time.Sleep(after)
			})}})
			c.requests = make(limiter, 1)
			err := c.get(withTimeout(t.Context(), 4*time.Minute), path("bindings", "/"), nil)
			require.ErrorContains(t, err, want)
			require.Equal(t, after == time.Minute, attempts == maxTimeouts, "%d attempts", attempts)
		})
	}
}

// breakingOff is a server that closes each connection without an answer, after a call.
type breakingOff func()

func (b breakingOff) RoundTrip(*http.Request) (*http.Response, error) {
	b()
	return nil, io.EOF
}

// A broker tells how many queues it has, in the answer that also has its version.
func TestBrokerTellsItsNumberOfQueues(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	b.DeclareQueue(t, "one", "classic", nil)
	c := newClient(t, b, b.Endpoint)
	require.Greater(t, c.listTimeout(t.Context()), requestTimeout)
}

// verdict has the answers that the provider decides by.
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
		"credentials": setCredentials, "vhost": grantVhost, "access": grantAccess, "tag": "The user needs the tag ", "permission": setPermissions,
		"endpoint": lookAtEndpoint, "gateway": lookAtGateway, "https": writeHTTPS[1:], "proxy": loginAtProxy[1:], "redirect": "Set the endpoint to that address",
	} {
		if strings.Contains(err.Error(), remedy) {
			v.remedy += name
		}
	}
	return v
}

// A name decides nothing: each answer means the same for all names.
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
		"crash":             {400, reason("Request to node rabbit@one failed with {'EXIT',{function_clause,[<<\\\"%[1]s\\\">>]}}"), unanswered},
		"not formed": {
			400, reason("Cannot declare quorum " + queue + " on node 'rabbit@one' with leader on node 'rabbit@one': cluster_not_formed"),
			verdict{notFormed: true},
		},
		"wrong password":          {401, reason("Not_Authorized"), verdict{unauthorized: true, remedy: "credentials"}},
		"wrong password, 3.10":    {401, reason("Login failed"), verdict{unauthorized: true, remedy: "credentials"}},
		"no vhost":                {401, reason("User not authorised to access virtual host"), verdict{unauthorized: true, remedy: "vhost"}},
		"no tag":                  {401, reason("Not management user"), verdict{unauthorized: true, remedy: "tag"}},
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
			require.Equalf(t, c.want, verdictOn(a, a.failure()), "%s, %q", kind, name)
		}
	}
}

// The broker refuses a user, another owner's queue and a wrong value in its own words, and quotes the name.
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

// A host that is named like a fault is unreachable like any other.
func TestNameOfAHostDecidesNothing(t *testing.T) {
	t.Parallel()
	c := &Client{base: "http://EOF.invalid:15672"}
	if err := c.unreached(t.Context(), &net.DNSError{Err: "no such host", Name: "EOF.invalid"}); !IsUnreached(err) {
		t.Errorf("got %v", err)
	}
}

// If a setting keeps requests from the management API, the error names that setting.
func TestUnreachedSaysWhatToSet(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	amqp, err := url.Parse(b.URI)
	require.NoError(t, err)
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	server, ca := brokertest.ServerTLS(t)
	server.ClientAuth = tls.RequireAnyClientCert
	mutual := brokertest.ListenTLS(t, server, func(conn net.Conn) { _ = conn.(*tls.Conn).HandshakeContext(t.Context()); _ = conn.Close() })
	asking := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusProxyAuthRequired) }))
	t.Cleanup(asking.Close)
	alerting := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_, _ = conn.Write([]byte{21, 3, 3, 0, 2, 2, 10}) // a fatal TLS alert: unexpected message
			_ = conn.Close()
		}
	}))
	t.Cleanup(alerting.Close)
	const address = "http://127.0.0.1:1"

	for name, c := range map[string]struct {
		config Config
		want   string
		proxys bool
	}{
		"private authority":                {Config{Endpoint: secure.URL}, "RABBITMQ_CACERT, in cacert_file", false},
		"http to a TLS port that says so":  {Config{Endpoint: alerting.URL}, "this port uses TLS: begin the endpoint with https://", false},
		"http to a TLS port that hangs up": {Config{Endpoint: "http://" + mutual}, "if this port uses TLS", false},
		"http to a TLS port that answers":  {Config{Endpoint: strings.Replace(secure.URL, "https", "http", 1)}, "begin the endpoint with https://", false},
		"https to a plain port":            {Config{Endpoint: strings.Replace(b.Endpoint, "http", "https", 1)}, "begin the endpoint with http://", false},
		"no client certificate":            {Config{Endpoint: "https://" + mutual, Certificates: certificates.Set{CA: certificates.Source{File: ca}}}, "RABBITMQ_CLIENTCERT and RABBITMQ_CLIENTKEY, in clientcert_file", false},
		"AMQP port":                        {Config{Endpoint: "http://" + amqp.Host}, "this is the AMQP port", false},
		"nobody there":                     {Config{Endpoint: address}, "check that RabbitMQ runs", false},
		"endpoint with /api":               {Config{Endpoint: b.Endpoint + "/api/"}, "Remove /api from the end of the endpoint", false},
		"endpoint with a prefix":           {Config{Endpoint: b.Endpoint + "/rabbit"}, "If RabbitMQ's management.path_prefix", false},
		"proxy that wants a user":          {Config{Endpoint: b.Endpoint, Proxy: asking.URL}, "he proxy asks for a user and a password", true},
		"the same, through CONNECT":        {Config{Endpoint: "https://rabbitmq.example.com", Proxy: asking.URL}, "he proxy asks for a user and a password", true},
		"no proxy":                         {Config{Endpoint: b.Endpoint, Proxy: address}, "the proxy cannot be reached: correct proxy in the provider block", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.config.Username, c.config.Password = "guest", "s3cret"
			client, err := New(c.config)
			require.NoError(t, err)
			_, err = client.User(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "s3cret") || IsProxys(err) != c.proxys ||
				IsUnreached(err) != (name == "nobody there") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestProxyIsAURL(t *testing.T) {
	t.Parallel()
	for _, proxy := range []string{"u:s3cret@proxy.example.com", "proxy.example.com:3128", "u:s3cret@proxy.example.com:3128", "ftp://u:s3cret@proxy", "http://"} {
		_, err := New(Config{Endpoint: "http://localhost:15672", Proxy: proxy})
		if err == nil || !strings.Contains(err.Error(), "proxy (RABBITMQ_PROXY) must be a URL") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", proxy, err)
		}
	}
}

func TestLackingNamesThePermission(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
		"PUT /api/exchanges/%2F/a%2Fb":         `configure on "a/b" in the vhost "/"`,
		"DELETE /api/queues/v/q?if-empty=true": `configure on "q" in the vhost "v"`,
		"POST /api/bindings/v/e/x/q/q":         `read on "x" and write on "q" in the vhost "v"`,
		"DELETE /api/bindings/v/e/x/q/q/key":   `read on "x" and write on "q" in the vhost "v"`,
		"POST /api/queues/v/q/get":             `read on "q" in the vhost "v"`,
		"GET /api/whoami":                      "See rabbitmqctl set_user_tags",
	} {
		_, path, _ := strings.Cut(request, " ")
		require.Contains(t, lacking(path), want, request)
	}
}
