package worker

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// supervisor runs each pipeline of the configuration that is in force.
type supervisor struct {
	// run works on a pipeline until the context is done. The error is about what it could not finish.
	run     func(ctx context.Context, p *deadletter.Pipeline, changes <-chan *deadletter.Pipeline) error
	options Options
	runners map[key]*pipelineRunner
	running sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// key tells the pipelines of a configuration apart.
type key struct{ vhost, name string }

// pipelineRunner is the work on one pipeline.
type pipelineRunner struct {
	pipeline *deadletter.Pipeline
	// changes has the latest change, until the runner takes it.
	changes chan *deadletter.Pipeline
	stop    context.CancelFunc
}

// compile reports the first pipeline that is not valid.
func compile(config workerconfig.Config) ([]*deadletter.Pipeline, error) {
	pipelines := make([]*deadletter.Pipeline, len(config.Pipelines))
	for i, w := range config.Pipelines {
		var err error
		if pipelines[i], err = deadletter.NewPipeline(w); err != nil {
			return nil, fmt.Errorf("pipelines[%d].%w", i, err)
		}
	}
	return pipelines, nil
}

// follow puts a configuration in force. One that is not valid changes nothing.
func (s *supervisor) follow(ctx context.Context, config workerconfig.Config) error {
	pipelines, err := compile(config)
	if err != nil {
		return err
	}
	s.options.Metrics.ConfigLoaded(pipelines)
	wanted := map[key]bool{}
	for _, p := range pipelines {
		k := key{p.Vhost, string(p.Names)}
		wanted[k] = true
		if r, ok := s.runners[k]; ok {
			r.change(p)
		} else {
			s.runners[k] = s.start(ctx, p)
		}
	}
	for k, r := range s.runners {
		if !wanted[k] {
			r.stop()
			delete(s.runners, k)
		}
	}
	return nil
}

func (s *supervisor) start(ctx context.Context, p *deadletter.Pipeline) *pipelineRunner {
	own, stop := context.WithCancel(ctx)
	r := &pipelineRunner{pipeline: p, changes: make(chan *deadletter.Pipeline, 1), stop: stop}
	s.running.Go(func() {
		defer stop()
		err := s.run(own, p, r.changes)
		if err == nil {
			return
		}
		err = fmt.Errorf("pipeline %q in vhost %q: %w", p.Names, p.Vhost, err)
		if ctx.Err() == nil {
			// The pipeline left the configuration; the others go on.
			s.options.Logger.Error("a pipeline did not stop cleanly", "error", err)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.errs = append(s.errs, err)
	})
	return r
}

// wait waits until all pipelines have stopped.
func (s *supervisor) wait() error {
	s.running.Wait()
	return errors.Join(s.errs...)
}

// change hands a configuration over if it differs. One that was not taken yet is superseded.
func (r *pipelineRunner) change(p *deadletter.Pipeline) {
	if reflect.DeepEqual(r.pipeline, p) {
		return
	}
	r.pipeline = p
	select {
	case <-r.changes:
	default:
	}
	r.changes <- p // has room, since nobody else sends
}
