// Package reload keeps the worker's configuration in step with its file.
package reload

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// File is a configuration file.
type File struct {
	Path string
	// Report gets the outcome of each reload, one after the other.
	Report func(Outcome)
	Logger *slog.Logger

	configs    chan workerconfig.Config
	inForce    []byte
	generation int
	// seen is the contents at the last look, or the error of that look.
	seen string
}

// Outcome is the result of a change of the file.
type Outcome struct {
	// Generation counts the configurations that came into force. The worker starts with the first.
	Generation int
	// Err says why the file was refused. The configuration of the generation then stays in force.
	Err error
}

// Read reads the configuration. It also returns the bytes of the file if the file can be read.
func Read(path string) (workerconfig.Config, []byte, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the user says which
	if err != nil {
		return workerconfig.Config{}, nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return workerconfig.Config{}, data, fmt.Errorf("%s: the file is empty", path)
	}
	config, err := workerconfig.Parse(data)
	if err != nil {
		return workerconfig.Config{}, data, fmt.Errorf("%s: %w", path, err)
	}
	return config, data, nil
}

// Follow sends each change of the file until the context is done. It starts with a file that differs from first. It
// looks when the file changes, or when a signal asks for it.
func (f File) Follow(ctx context.Context, first []byte, asked <-chan os.Signal) <-chan workerconfig.Config {
	f.configs, f.inForce, f.seen, f.generation = make(chan workerconfig.Config), first, string(first), 1
	go f.run(ctx, asked)
	return f.configs
}

// look puts the configuration in force if it is new and valid. It refuses the same file only once, unless a signal asks
// for a look.
func (f *File) look(ctx context.Context, asked bool) {
	config, data, err := Read(f.Path)
	seen := string(data)
	if data == nil {
		seen = err.Error()
	}
	if seen == f.seen && !asked {
		return
	}
	f.seen = seen
	switch {
	case err != nil:
		f.Logger.Error("configuration refused: the previous one stays in force", "error", err, "generation", f.generation)
	case bytes.Equal(data, f.inForce) && len(config.Refused) == 0:
		f.Logger.Info("the configuration is already in force", "file", f.Path, "generation", f.generation)
	default:
		select {
		case f.configs <- config:
		case <-ctx.Done():
			return
		}
		f.inForce = data
		f.generation++
		f.Logger.Info("configuration reloaded", "file", f.Path, "generation", f.generation, "pipelines", len(config.Pipelines),
			"delayed_exchanges", len(config.DelayedExchanges), "refused", len(config.Refused))
	}
	f.Report(Outcome{Generation: f.generation, Err: err})
}

// writeGrace gives a writer time to finish the file, and emptyGrace to begin: `terraform output >` first empties it.
const (
	writeGrace = 250 * time.Millisecond
	emptyGrace = 3 * time.Second
)

// lookEvery is for changes that a watch does not see: on a network file system, behind a link, or in a re-created
// folder. Tests shorten it.
var lookEvery = 30 * time.Second

// run looks whenever something changes in the file's folder.
func (f *File) run(ctx context.Context, asked <-chan os.Signal) {
	folder, stop := f.watch()
	defer stop()
	regularly := time.NewTicker(lookEvery)
	defer regularly.Stop()
	var settled, filled <-chan time.Time

	f.look(ctx, false)
	for {
		select {
		case <-folder.Events:
			if settled == nil {
				settled = time.After(writeGrace)
			}
		case <-folder.Errors: //nolint:errcheck // after any error, events can be lost
			settled = time.After(writeGrace)
		case <-settled:
			settled = nil
			if info, err := os.Stat(f.Path); err == nil && info.Size() == 0 {
				filled = time.After(emptyGrace)
				continue
			}
			f.look(ctx, false)
		case <-filled:
			f.look(ctx, false)
		case <-regularly.C:
			f.look(ctx, false)
		case <-asked:
			f.look(ctx, true)
		case <-ctx.Done():
			return
		}
	}
}

// watch watches the folder, since the file is replaced rather than written. Editors do that, and so does Kubernetes,
// where the file is a link through another link in the same folder. If the system has no watches left, only the regular
// look remains.
func (f *File) watch() (folder *fsnotify.Watcher, stop func()) {
	folder, err := fsnotify.NewWatcher()
	if err == nil {
		err = folder.Add(filepath.Dir(f.Path))
	}
	if err != nil {
		f.Logger.Warn("the configuration's folder cannot be watched: reading the file at intervals", "error", err, "every", lookEvery)
	}
	if folder == nil {
		return &fsnotify.Watcher{}, func() {}
	}
	return folder, func() { _ = folder.Close() }
}
