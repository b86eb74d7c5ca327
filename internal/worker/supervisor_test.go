package worker

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker/session"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// supervised is a supervisor whose pipelines only note their configurations.
type supervised struct {
	*supervisor
	mu      sync.Mutex
	running map[string]int // number of changes, by the pipeline's name
}

// supervise makes pipelines take this long to stop, and then fail if their name says so.
func supervise(stopping time.Duration) *supervised {
	s := &supervised{running: map[string]int{}}
	options := Options{Logger: slog.New(slog.DiscardHandler), Metrics: metrics.New("")}
	s.supervisor = &supervisor{options: options, runners: map[workerconfig.ID]*runner{}}
	s.run = func(ctx context.Context, c session.Config, changes <-chan session.Config) error {
		name := c.ID().Name
		s.note(func() { s.running[name] = 0 })
		defer s.note(func() { delete(s.running, name) })
		for {
			select {
			case <-changes:
				s.note(func() { s.running[name]++ })
			case <-ctx.Done():
				time.Sleep(stopping)
				if strings.HasPrefix(name, "stuck") {
					return errors.New("still in flight")
				}
				return nil
			}
		}
	}
	return s
}

func (s *supervised) note(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// expect compares the running pipelines once all goroutines are idle.
func (s *supervised) expect(t *testing.T, want map[string]int) {
	t.Helper()
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.running, want) {
		t.Errorf("running %v, want %v", s.running, want)
	}
}

func configured(delays string, names ...string) (config workerconfig.Config) {
	for _, name := range names {
		config.Pipelines = append(config.Pipelines, pipeline.Worker{
			Version: pipeline.WorkerVersion, Name: name, Vhost: "/", Delays: strings.Fields(delays), MaxAttempts: 3,
		})
	}
	return config
}

func TestSupervisorFollowsTheConfiguration(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := supervise(20 * time.Second)
		follow := func(config workerconfig.Config) { s.follow(ctx, config) }
		follow(configured("5s", "a", "b"))
		s.expect(t, map[string]int{"a": 0, "b": 0})
		follow(configured("5s", "b", "c")) // b has not changed
		s.expect(t, map[string]int{"a": 0, "b": 0, "c": 0})
		time.Sleep(20 * time.Second)
		s.expect(t, map[string]int{"b": 0, "c": 0})
		follow(configured("5s 10s", "b", "c"))
		s.expect(t, map[string]int{"b": 1, "c": 1})

		refused := func(of workerconfig.ID) workerconfig.Config {
			config := configured("5s", "e")
			config.Refused = []workerconfig.Refused{{ID: of, Err: errors.New("newer")}}
			return config
		}
		follow(refused(workerconfig.ID{Kind: rules.Pipeline})) // it can be b or c
		s.expect(t, map[string]int{"b": 1, "c": 1, "e": 0})
		follow(refused(workerconfig.ID{Kind: rules.Pipeline, Name: "b", Vhost: "/"}))
		time.Sleep(20 * time.Second)
		s.expect(t, map[string]int{"b": 1, "e": 0})

		began := time.Now()
		cancel()
		if err := s.wait(); err != nil || time.Since(began) != 20*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		s.expect(t, map[string]int{})
	})
}

// The worker's error is only about flows that could not finish when the worker stopped.
func TestSupervisorReportsWhatDidNotFinish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := supervise(time.Second)
		for _, names := range [][]string{{"a", "stuck.removed", "stuck"}, {"a", "stuck"}} {
			s.follow(ctx, configured("5s", names...))
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		cancel()
		err := s.wait()
		if want := `pipeline "stuck" in vhost "/": still in flight`; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		if left := slices.Collect(maps.Keys(s.running)); len(left) > 0 {
			t.Errorf("%v are running", left)
		}
	})
}
