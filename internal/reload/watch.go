package reload

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

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
