package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// crew runs a task for each pipeline of the configuration that is in force.
type crew struct {
	options Options
	tasks   map[key]*task
	running sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// key tells whether pipelines of two configurations are the same.
type key struct{ vhost, name string }

// task is the work on one pipeline.
type task struct {
	pipeline *deadletter.Pipeline
	// changes has the latest change, until the task takes it.
	changes chan *deadletter.Pipeline
	stop    context.CancelFunc
}

// follow puts a configuration in force.
func (c *crew) follow(ctx context.Context, config Config) {
	c.options.Metrics.ConfigLoaded(config.Pipelines)
	wanted := map[key]bool{}
	for _, p := range config.Pipelines {
		k := key{p.Vhost, string(p.Names)}
		wanted[k] = true
		if t, ok := c.tasks[k]; ok {
			t.change(p)
		} else {
			c.tasks[k] = c.start(ctx, p)
		}
	}
	for k, t := range c.tasks {
		if !wanted[k] {
			t.stop()
			delete(c.tasks, k)
		}
	}
}

func (c *crew) start(ctx context.Context, p *deadletter.Pipeline) *task {
	own, stop := context.WithCancel(ctx)
	t := &task{pipeline: p, changes: make(chan *deadletter.Pipeline, 1), stop: stop}
	c.running.Go(func() {
		defer stop()
		err := supervise(own, c.options, p, t.changes)
		if err == nil {
			return
		}
		err = fmt.Errorf("pipeline %q in vhost %q: %w", p.Names, p.Vhost, err)
		if ctx.Err() == nil {
			// The pipeline left the configuration; the worker goes on.
			c.options.Logger.Error("a pipeline did not stop cleanly", "error", err)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.errs = append(c.errs, err)
	})
	return t
}

// wait waits until all tasks have stopped.
func (c *crew) wait() error {
	c.running.Wait()
	return errors.Join(c.errs...)
}

// change hands a configuration over if it differs. One that was not taken yet is superseded.
func (t *task) change(p *deadletter.Pipeline) {
	if reflect.DeepEqual(t.pipeline, p) {
		return
	}
	t.pipeline = p
	select {
	case <-t.changes:
	default:
	}
	t.changes <- p // has room, since nobody else sends
}
