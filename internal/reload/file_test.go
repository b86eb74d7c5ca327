package reload_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// patience ends before a regular look.
const patience = reload.LookEvery - 2*time.Second

// config returns a configuration of one pipeline.
func config(name string) string {
	return fmt.Sprintf(`{"pipelines":[{"version":1,"name":%q,"vhost":"/","delays":["5s"],"max_attempts":4}]}`, name)
}

// follower follows a file.
type follower struct {
	path     string
	configs  <-chan workerconfig.Config
	outcomes chan reload.Outcome
	hangups  chan os.Signal

	mu  sync.Mutex
	log bytes.Buffer
}

func (f *follower) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.log.Write(p)
}

// follow follows a file with the configuration of a pipeline "first".
func follow(t *testing.T, path string) *follower {
	t.Helper()
	f := &follower{path: path, outcomes: make(chan reload.Outcome, 16), hangups: make(chan os.Signal)}
	file := reload.File{Path: path, Logger: slog.New(slog.NewTextHandler(f, nil)), Report: func(o reload.Outcome) { f.outcomes <- o }}
	_, first, err := reload.Read(path)
	require.NoError(t, err)
	f.configs = file.Follow(t.Context(), first, f.hangups)
	f.hangUp() // taken, so the folder is being watched
	f.expect(t, 1, "")
	return f
}

func (f *follower) hangUp() { f.hangups <- syscall.SIGHUP }

// expectConfig waits for a configuration to come into force.
func (f *follower) expectConfig(t *testing.T, name string, generation int) {
	t.Helper()
	got, came := brokertest.Within(f.configs, patience)
	require.Truef(t, came, "no configuration; %d outcomes", len(f.outcomes))
	require.Equal(t, name, got.Pipelines[0].Name)
	f.expect(t, generation, "")
}

// expect waits for an outcome whose error has this text.
func (f *follower) expect(t *testing.T, generation int, refusal string) {
	t.Helper()
	o, came := brokertest.Within(f.outcomes, patience)
	require.True(t, came, "no outcome")
	if o.Generation != generation || (o.Err == nil) != (refusal == "") || o.Err != nil && !strings.Contains(o.Err.Error(), refusal) {
		t.Errorf("outcome %+v, want generation %d and error %q", o, generation, refusal)
	}
}

func (f *follower) refusals() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Count(f.log.String(), "configuration refused")
}

func write(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
}

func newFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "worker.json")
	write(t, path, config("first"))
	return path
}

func TestChangesComeIntoForce(t *testing.T) {
	t.Parallel()
	f := follow(t, newFile(t))
	write(t, f.path, config("second"))
	f.expectConfig(t, "second", 2)

	write(t, f.path+".new", config("third"))
	require.NoError(t, os.Rename(f.path+".new", f.path))
	f.expectConfig(t, "third", 3)

	f.hangUp()
	f.expect(t, 3, "")
}

func TestWrongFilesAreRefusedOnce(t *testing.T) {
	t.Parallel()
	wrong := map[string]struct{ content, want string }{
		"empty":        {"", "the file is empty"},
		"half-written": {config("second")[:40], "the configuration is not JSON"},
		"wrong":        {strings.Replace(config("second"), `"version":1`, `"version":2`, 1), `pipelines[0].version: 2 is not a version`},
	}
	for name, test := range wrong {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := follow(t, newFile(t))
			write(t, f.path, test.content)
			f.expect(t, 1, test.want)
			write(t, f.path, test.content) // the same content again is not reported
			write(t, filepath.Join(filepath.Dir(f.path), "unrelated"), "x")
			f.hangUp() // a signal gets a report
			f.expect(t, 1, test.want)
			require.Equal(t, 2, f.refusals())
			write(t, f.path, config("first"))
			f.expect(t, 1, "")
			write(t, f.path, config("second"))
			f.expectConfig(t, "second", 2)
		})
	}
}

// `terraform output -raw worker_config > worker.json` takes a second in which the file is empty.
func TestFileThatIsEmptyForAWhile(t *testing.T) {
	t.Parallel()
	f := follow(t, newFile(t))
	write(t, f.path, "")
	outcome, came := brokertest.Within(f.outcomes, time.Second)
	require.Falsef(t, came, "%+v", outcome)
	write(t, f.path, config("second"))
	f.expectConfig(t, "second", 2)
	require.Zero(t, f.refusals())
}

func TestFileThatIsGoneForAWhile(t *testing.T) {
	t.Parallel()
	f := follow(t, newFile(t))
	require.NoError(t, os.Remove(f.path))
	f.expect(t, 1, "no such file")
	write(t, f.path, config("second"))
	f.expectConfig(t, "second", 2)
}

// Kubernetes writes a new folder, and swaps the link that the file's own link leads through.
func TestSwappedLinks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	swap := func(version, content string) {
		require.NoError(t, os.Mkdir(filepath.Join(folder, version), 0o700))
		write(t, filepath.Join(folder, version, "worker.json"), content)
		require.NoError(t, os.Symlink(version, filepath.Join(folder, "..data_tmp")))
		require.NoError(t, os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")))
	}
	swap("..1", config("first"))
	path := filepath.Join(folder, "worker.json")
	require.NoError(t, os.Symlink(filepath.Join("..data", "worker.json"), path))
	f := follow(t, path)
	swap("..2", config("second"))
	require.NoError(t, os.RemoveAll(filepath.Join(folder, "..1")))
	f.expectConfig(t, "second", 2)
	swap("..3", "")
	f.expect(t, 2, "is empty")
	swap("..4", config("fourth"))
	f.expectConfig(t, "fourth", 3)
}

// A watch ends with its folder.
func TestFolderThatWasMadeAnew(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "etc")
	require.NoError(t, os.Mkdir(folder, 0o700))
	path := filepath.Join(folder, "worker.json")
	write(t, path, config("first"))
	f := follow(t, path)
	require.NoError(t, os.Rename(folder, folder+".old"))
	require.NoError(t, os.Mkdir(folder, 0o700))
	write(t, path, config("second"))
	if _, came := brokertest.Within(f.configs, brokertest.Slow(reload.LookEvery)); !came {
		t.Fatal("no configuration")
	}
}

// A change between the first reading and the watch is not missed.
func TestChangeBeforeTheWatch(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	outcomes := make(chan reload.Outcome, 1)
	file := reload.File{Path: path, Logger: slog.New(slog.DiscardHandler), Report: func(o reload.Outcome) { outcomes <- o }}
	f := &follower{configs: file.Follow(t.Context(), []byte(config("older")), nil), outcomes: outcomes}
	f.expectConfig(t, "first", 2)
}
