package plain_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/acctest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// secret has characters that encodings change.
const secret = `s3cr3t <"&'+/%>`

// writeOnly is a user with a write-only password that can log in to the vhost.
func writeOnly(b *brokertest.Broker) (c *acctest.Core, name string) {
	name = b.Vhost + "-user"
	return core("rabbitmq_user", map[string]any{
		"name": name, "password_wo": secret, "password_wo_version": 1, "permissions": permitted(b, ""),
	}), name
}

func permitted(b *brokertest.Broker, read string) map[string]any {
	return map[string]any{b.Vhost: map[string]any{"configure": "", "write": "", "read": read}}
}

func userPath(name string) string { return "/api/users/" + url.PathEscape(name) }

// userOf is a user as the broker describes it.
func userOf(t *testing.T, b *brokertest.Broker, name string) (live map[string]any) {
	t.Helper()
	b.Call(t, http.MethodGet, userPath(name), nil, &live)
	return live
}

func requireNoUser(t *testing.T, b *brokertest.Broker, name string) {
	t.Helper()
	if status, _ := b.Request(t, http.MethodGet, userPath(name), nil); status != http.StatusNotFound {
		t.Errorf("the user is there: %d", status)
	}
}

// recorded is the endpoint of a management API, and takes the users that were sent to it.
func recorded(t *testing.T, b *brokertest.Broker) (endpoint string, take func() []map[string]any) {
	t.Helper()
	var mutex sync.Mutex
	var sent []map[string]any
	endpoint = b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/api/users/") {
			content, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(bytes.NewReader(content))
			var body map[string]any
			_ = json.Unmarshal(content, &body)
			mutex.Lock()
			sent = append(sent, body)
			mutex.Unlock()
		}
		api.ServeHTTP(w, r)
	})
	return endpoint, func() []map[string]any {
		mutex.Lock()
		defer mutex.Unlock()
		taken := sent
		sent = nil
		return taken
	}
}

func TestAcc_UpdateSendsTheHash(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c, name := writeOnly(b)
	endpoint, take := recorded(t, b)
	c.Endpoint = endpoint
	c.MustApply(t)
	require.Equal(t, []map[string]any{{"password": secret, "tags": ""}}, take())
	live := userOf(t, b, name)
	c.Config["password_wo"] = "not sent, because the version is the same"
	for _, tags := range [][]any{{"monitoring"}, {"a", "management"}, nil} {
		c.Config["tags"] = tags
		c.MustApply(t)
		sent := take()
		require.Len(t, sent, 1)
		delete(sent[0], "tags")
		require.Equal(t, map[string]any{"password_hash": live["password_hash"], "hashing_algorithm": live["hashing_algorithm"]}, sent[0])
		logsIn(t, b, name, secret)
		c.RequireEmptyPlan(t)
	}
	c.Config["permissions"] = permitted(b, ".*")
	c.MustApply(t)
	require.Empty(t, take(), "a change of permissions wrote the user")
	c.Config["password_wo_version"] = nil
	c.Config["password_wo"] = nil
	c.MustApply(t)
	require.Empty(t, take(), "the user lost its password")
	logsIn(t, b, name, secret)
	require.NoError(t, c.Destroy(t.Context()))
}

// The broker's own algorithm can differ from that of a user's hash.
func TestAccEveryRelease_TagsKeepTheAlgorithm(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	salted := sha512.Sum512(append([]byte("salt"), secret...))
	hash := base64.StdEncoding.EncodeToString(append([]byte("salt"), salted[:]...))
	for what, config := range map[string]map[string]any{
		"nothing":             {},
		"password_hash":       {"password_hash": hash},
		"password":            {"password": secret},
		"password_wo":         {"password_wo": secret, "password_wo_version": 1},
		"another permissions": {"permissions": permitted(b, "^a")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			name := b.Vhost + strings.ReplaceAll(what, " ", "-")
			b.Call(t, http.MethodPut, userPath(name), map[string]any{
				"password_hash": hash, "hashing_algorithm": "rabbit_password_hashing_sha512", "tags": "",
			}, nil)
			b.Call(t, http.MethodPut, b.Path("permissions", name), map[string]any{"configure": "", "write": "", "read": ""}, nil)
			config["name"], config["tags"] = name, []any{"monitoring"}
			c := core("rabbitmq_user", config)
			require.NoError(t, c.Import(t.Context(), url.PathEscape(name)))
			if config["permissions"] != nil {
				_, err := c.PlanAndApply(t.Context())
				require.ErrorContains(t, err, "Permissions exist already")
				require.Empty(t, userOf(t, b, name)["tags"], "the refused change changed the tags")
				config["permissions"] = nil
			}
			c.MustApply(t)
			logsIn(t, b, name, secret)
			c.Config["tags"] = nil
			c.MustApply(t)
			logsIn(t, b, name, secret)
			c.RequireEmptyPlan(t)
			require.NoError(t, c.Destroy(t.Context()))
		})
	}
}

// From 4.4 on, the management API does not return hashes.
func TestAccEveryRelease_HiddenHash(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	hidden := b.After(t, func(r *http.Request, answer *httptest.ResponseRecorder) {
		if !strings.HasPrefix(r.URL.Path, "/api/users") || r.Method != http.MethodGet {
			return
		}
		var decoded any
		_ = json.Unmarshal(answer.Body.Bytes(), &decoded)
		users, isList := decoded.([]any)
		if !isList {
			users = []any{decoded}
		}
		for _, user := range users {
			if of, isUser := user.(map[string]any); isUser {
				delete(of, "password_hash")
			}
		}
		text, _ := json.Marshal(decoded)
		answer.Body = bytes.NewBuffer(text)
	})
	c, name := writeOnly(b)
	c.Endpoint = hidden
	c.MustApply(t)
	c.RequireEmptyPlan(t)
	c.Config["permissions"] = permitted(b, ".*")
	c.MustApply(t)
	c.Config["tags"] = []any{"monitoring"}
	c.Config["permissions"] = map[string]any{}
	_, err := c.PlanAndApply(t.Context())
	require.ErrorContains(t, err, "increase password_wo_version")
	logsIn(t, b, name, secret) // the refused change took no permissions away
	require.Empty(t, userOf(t, b, name)["tags"])
	c.Config["permissions"] = permitted(b, ".*")
	c.Config["password_wo_version"] = 2
	c.MustApply(t)
	logsIn(t, b, name, secret)
	c.RequireEmptyPlan(t)
	delete(c.Config, "password_wo")
	delete(c.Config, "password_wo_version")
	for attribute, value := range map[string]any{"password": secret, "password_hash": userOf(t, b, name)["password_hash"]} {
		c.Config[attribute] = value
		c.MustApply(t)
		c.Config["tags"] = []any{attribute}
		c.MustApply(t)
		logsIn(t, b, name, secret)
		c.RequireEmptyPlan(t)
		delete(c.Config, attribute)
	}
	require.NoError(t, c.Destroy(t.Context()))
}

func TestAcc_ClearedPasswordIsSentAgain(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c, name := writeOnly(b)
	c.MustApply(t)
	b.Call(t, http.MethodPut, userPath(name), map[string]any{"password_hash": "", "tags": ""}, nil)
	c.MustApply(t)
	logsIn(t, b, name, secret)
	c.RequireEmptyPlan(t)
	require.NoError(t, c.Destroy(t.Context()))
}

func TestAcc_DeletedUserIsNotCreatedWithoutItsPassword(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c, name := writeOnly(b)
	c.MustApply(t)
	c.Config["tags"] = []any{"monitoring"}
	plan, err := c.Plan(t.Context())
	require.NoError(t, err)
	b.Call(t, http.MethodDelete, userPath(name), nil, nil)
	require.ErrorContains(t, c.Apply(t.Context(), plan), "deleted after the plan")
	requireNoUser(t, b, name)
	c.MustApply(t)
	logsIn(t, b, name, secret)
	require.NoError(t, c.Destroy(t.Context()))
}

func TestAcc_UserWithoutItsPermissionsIsDeleted(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	c, name := writeOnly(b)
	c.Config["permissions"] = map[string]any{b.Vhost + "-none": permitted(b, "")[b.Vhost]}
	_, err := c.PlanAndApply(t.Context())
	require.Error(t, err)
	requireNoUser(t, b, name)
	c.Config["permissions"] = permitted(b, "")
	c.MustApply(t)
	logsIn(t, b, name, secret)
	require.NoError(t, c.Destroy(t.Context()))
}

func TestAcc_BadPasswords(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	for attribute, value := range map[string]string{"password": "", "password_wo": "", "password_hash": secret} {
		want := "RabbitMQ refuses to log in with an empty password"
		if value != "" {
			want = "rabbitmqctl hash_password"
		}
		c := core("rabbitmq_user", map[string]any{"name": "u", attribute: value})
		if attribute == "password_wo" {
			c.Config["password_wo_version"] = 1
		}
		found, err := c.Validate(t.Context())
		require.NoError(t, err)
		text := ""
		for _, d := range found {
			text += d.Summary + d.Detail
		}
		require.Contains(t, text, want)
		requireHidden(t, "the error for "+attribute, text, secret)
	}
}

// requireHidden fails if a text has a secret in any encoding.
func requireHidden(t *testing.T, where, text, secret string) {
	t.Helper()
	quoted, err := json.Marshal(secret)
	require.NoError(t, err)
	for _, form := range []string{
		secret, strings.Trim(string(quoted), `"`), url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)),
		strings.ReplaceAll(secret, `"`, `\"`), secret[:6],
	} {
		if i := strings.Index(text, form); i >= 0 {
			t.Errorf("%s has the secret: …%s…", where, text[max(0, i-100):min(len(text), i+100)])
			return
		}
	}
}

func TestAcc_ErrorsHideSecrets(t *testing.T) {
	t.Parallel()
	b := brokertest.New(t)
	echo := func(status int, format string) func(http.ResponseWriter, *http.Request, http.Handler) {
		return func(w http.ResponseWriter, r *http.Request, api http.Handler) {
			if r.Method == http.MethodGet {
				api.ServeHTTP(w, r)
				return
			}
			body, _ := io.ReadAll(r.Body)
			quoted, _ := json.Marshal(string(body))
			w.Header().Set("Location", "/login")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(strings.NewReplacer("BODY", string(body), "QUOTED", string(quoted)).Replace(format)))
		}
	}
	answers := map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"the broker's": func(w http.ResponseWriter, r *http.Request, api http.Handler) { api.ServeHTTP(w, r) },
	}
	for _, status := range []int{200, 201, 302, 400, 401, 404, 407, 429, 500, 502} {
		for _, format := range []string{"BODY", "bad: BODY", `{"error":"bad_request","reason":QUOTED}`, `{"error":"bad_request","reason":["no",BODY]}`} {
			answers[fmt.Sprintf("%d %s", status, format)] = echo(status, format)
		}
	}
	for what, answer := range answers {
		t.Run(strings.ReplaceAll(what, "/", "_"), func(t *testing.T) {
			t.Parallel()
			endpoint := b.Behind(t, answer)
			for attribute, extra := range map[string]map[string]any{
				"password": {}, "password_wo": {"password_wo_version": 1}, "password_hash": {},
			} {
				c := core("rabbitmq_user", extra)
				c.Endpoint = endpoint
				extra["name"], extra[attribute] = b.Vhost+attribute, secret
				if what == "the broker's" && attribute != "password_hash" {
					extra["name"] = "" // a name without a path is refused
				}
				_, err := c.PlanAndApply(t.Context())
				require.Error(t, err)
				requireHidden(t, "the error for "+attribute, err.Error(), secret)
			}
		})
	}
}

const secretUsers = `
variable "write_only" {
  ephemeral = true
  sensitive = true
}
variable "in_state" { sensitive = true }
variable "hash" { sensitive = true }
variable "tags" { type = set(string) }
provider "rabbitmq" { endpoint = "ENDPOINT" }
resource "rabbitmq_user" "write_only" {
  name                = "NAME-wo"
  password_wo         = var.write_only
  password_wo_version = 1
  tags                = var.tags
}
resource "rabbitmq_user" "in_state" {
  name     = "NAME-state"
  password = var.in_state
  tags     = var.tags
}
resource "rabbitmq_user" "hash" {
  name          = "NAME-hash"
  password_hash = var.hash
  tags          = var.tags
}
`

// Terraform and the provider as processes, with their logs and files.
func TestAcc_SecretsInLogsAndFiles(t *testing.T) {
	t.Parallel()
	acctest.Require(t)
	b := brokertest.New(t)
	tf := terraformtest.New(t, terraformtest.BuildProvider(t))
	log := filepath.Join(tf.Dir, "log")
	hash := base64.StdEncoding.EncodeToString([]byte("saltabcdefghijklmnopqrstuvwxyz012345"))
	secrets := map[string]string{"write_only": "wo-" + secret, "in_state": "in-" + secret, "hash": hash}
	tf.Env = append(tf.Env, "TF_LOG=TRACE", "TF_LOG_PATH="+log)
	for name, value := range secrets {
		tf.Env = append(tf.Env, "TF_VAR_"+name+"="+value)
	}
	failing := b.Behind(t, func(w http.ResponseWriter, r *http.Request, api http.Handler) {
		if r.Method == http.MethodGet {
			api.ServeHTTP(w, r)
			return
		}
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.Copy(w, r.Body)
	})
	write := func(endpoint string) {
		tf.Write(t, "main.tf", terraformtest.Required+strings.NewReplacer("ENDPOINT", endpoint, "NAME", b.Vhost).Replace(secretUsers))
	}
	hidden := func(where, text string, names ...string) {
		t.Helper()
		for _, name := range names {
			requireHidden(t, where, text, secrets[name])
		}
	}
	all := []string{"write_only", "in_state", "hash"}
	for _, tags := range []string{`[]`, `["monitoring"]`} {
		write(failing)
		args := []string{"-no-color", "-var", "tags=" + tags}
		printed, code := tf.Exit(t, append([]string{"apply", "-auto-approve"}, args...)...)
		require.Equal(t, 1, code)
		hidden("a failed apply", printed, all...)
		write(b.Endpoint)
		hidden("the plan", tf.Run(t, append([]string{"plan", "-out=plan"}, args...)...), all...)
		hidden("the shown plan", tf.Run(t, "show", "-no-color", "plan"), all...)
		shown := tf.Run(t, "show", "-json", "plan")
		hidden("the plan as JSON", shown, "write_only")
		hidden("the plan's file", unzipped(t, filepath.Join(tf.Dir, "plan")), "write_only")
		requireSensitive(t, shown)
		hidden("the apply", tf.Run(t, "apply", "-no-color", "plan"), all...)
		hidden("the shown state", tf.Run(t, "show", "-no-color"), all...)
		state, err := os.ReadFile(filepath.Join(tf.Dir, "terraform.tfstate"))
		require.NoError(t, err)
		hidden("the state", string(state), "write_only")
		printed, code = tf.Exit(t, append([]string{"plan", "-detailed-exitcode"}, args...)...)
		require.Zero(t, code, printed)
	}
	hidden("the destroy", tf.Run(t, "destroy", "-auto-approve", "-no-color", "-var", "tags=[]"), all...)
	logged, err := os.ReadFile(log)
	require.NoError(t, err)
	require.Contains(t, string(logged), "@module=sdk.proto", "the log has nothing of the provider")
	hidden("the log", string(logged), all...)
}

// unzipped has the content of all files in an archive.
func unzipped(t *testing.T, name string) string {
	t.Helper()
	archive, err := zip.OpenReader(name)
	require.NoError(t, err)
	defer func() { _ = archive.Close() }()
	var all bytes.Buffer
	for _, file := range archive.File {
		opened, err := file.Open()
		require.NoError(t, err)
		_, err = io.Copy(&all, opened)
		require.NoError(t, err)
	}
	return all.String()
}

// requireSensitive fails unless a plan marks the passwords as sensitive.
func requireSensitive(t *testing.T, plan string) {
	t.Helper()
	var shown struct {
		Changes []struct {
			Name   string `json:"name"`
			Change struct {
				After     map[string]any `json:"after"`
				Sensitive map[string]any `json:"after_sensitive"`
			} `json:"change"`
		} `json:"resource_changes"`
	}
	require.NoError(t, json.Unmarshal([]byte(plan), &shown))
	require.Len(t, shown.Changes, 3)
	for _, c := range shown.Changes {
		attribute := map[string]string{"in_state": "password", "hash": "password_hash"}[c.Name]
		if attribute != "" {
			require.Equal(t, true, c.Change.Sensitive[attribute], c.Name)
		} else {
			require.Nil(t, c.Change.After["password_wo"])
		}
	}
}
