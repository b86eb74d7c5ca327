// Package reload keeps the worker's configuration in step with the file that it comes from.
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
}

// Outcome is what became of a change of the file.
type Outcome struct {
	// Generation counts the configurations that came into force. The one that the worker starts with is
	// the first.
	Generation int
	// Err tells why the file was refused; the configuration of the generation stays in force then.
	Err error
}

// Read reads the configuration.
func Read(path string) (workerconfig.Config, []byte, error) {
	data, err := os.ReadFile(path) //nolint:gosec // the user says which
	if err != nil {
		return workerconfig.Config{}, nil, err
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return workerconfig.Config{}, data, fmt.Errorf("%s: no configuration: the file is empty", path)
	}
	config, err := workerconfig.Parse(data)
	if err != nil {
		return workerconfig.Config{}, data, fmt.Errorf("%s: %w", path, err)
	}
	return config, data, nil
}

// Follow sends what the file changes to, beginning with what differs from first, until the context is
// done. It looks when the file changes, or when it is asked to.
func (f File) Follow(ctx context.Context, first []byte, asked <-chan os.Signal) <-chan workerconfig.Config {
	configs := make(chan workerconfig.Config)
	follower := &follower{File: f, configs: configs, inForce: first, seen: string(first), generation: 1}
	go follower.run(ctx, asked)
	return configs
}

// follower knows what the file contained when it was looked at.
type follower struct {
	File
	configs    chan<- workerconfig.Config
	inForce    []byte
	generation int
	// seen is what the last look found, or its error.
	seen string
}

// look puts the configuration in force if it is new and good. What was refused is not refused again,
// unless somebody asks.
func (f *follower) look(ctx context.Context, asked bool) {
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
		f.Logger.Error("configuration refused: the one before stays in force", "error", err, "generation", f.generation)
	case bytes.Equal(data, f.inForce):
		f.Logger.Info("the configuration is the one that is in force", "file", f.Path, "generation", f.generation)
	default:
		select {
		case f.configs <- config:
		case <-ctx.Done():
			return
		}
		f.inForce = data
		f.generation++
		f.Logger.Info("configuration reloaded", "file", f.Path, "generation", f.generation, "pipelines", len(config.Pipelines),
			"delayed_exchanges", len(config.DelayedExchanges))
	}
	f.Report(Outcome{Generation: f.generation, Err: err})
}

// writeGrace lets whoever writes the file finish.
const writeGrace = 250 * time.Millisecond

// lookEvery is for what a watch does not see: a network file system, the far end of a link, a folder
// that was re-created. Tests have less time.
var lookEvery = 30 * time.Second

// run looks whenever something changes in the file's folder.
func (f *follower) run(ctx context.Context, asked <-chan os.Signal) {
	folder, stop := f.watch()
	defer stop()
	regularly := time.NewTicker(lookEvery)
	defer regularly.Stop()
	var settled <-chan time.Time

	f.look(ctx, false)
	for {
		select {
		case <-folder.Events:
			if settled == nil {
				settled = time.After(writeGrace)
			}
		case <-folder.Errors: //nolint:errcheck // whatever it is, events may have been lost
			settled = time.After(writeGrace)
		case <-settled:
			settled = nil
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

// watch watches the folder and not the file, which is replaced rather than written: by editors, and by
// Kubernetes, where it is a link through another link in the same folder. A system that has no watch
// left leaves the regular look.
func (f *follower) watch() (folder *fsnotify.Watcher, stop func()) {
	folder, err := fsnotify.NewWatcher()
	if err == nil {
		err = folder.Add(filepath.Dir(f.Path))
	}
	if err != nil {
		f.Logger.Warn("the configuration's folder cannot be watched: looking now and then", "error", err, "every", lookEvery)
	}
	if folder == nil {
		return &fsnotify.Watcher{}, func() {}
	}
	return folder, func() { _ = folder.Close() }
}
