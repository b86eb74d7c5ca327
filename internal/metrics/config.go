package metrics

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// config is what is known about the configuration at work.
type config struct {
	generation int
	loadedAt   time.Time
	refused    bool
}

// ConfigLoaded notes that a configuration with these pipelines and delayed exchanges is at work from now on. What was known of
// others is forgotten.
func (s *Set) ConfigLoaded(pipelines []*deadletter.Pipeline, exchanges []*delaying.Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config{generation: s.config.generation + 1, loadedAt: time.Now()}
	kept := map[workerconfig.ID]bool{}
	for _, p := range pipelines {
		kept[p.ID()] = true
		if watched := s.pipelines[p.ID()]; watched != nil {
			watched.expect(p)
		} else {
			s.addPipeline(p)
		}
	}
	for _, e := range exchanges {
		kept[e.ID()] = true
		if watched := s.exchanges[e.ID()]; watched != nil {
			watched.queues = e.Queues()
		} else {
			s.addExchange(e)
		}
	}
	for id, f := range s.flows {
		if !kept[id] {
			s.forget(f)
		}
	}
}

// ConfigRead notes whether the configuration that was read last can be used. If it cannot, the one at
// work stays.
func (s *Set) ConfigRead(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config.refused = err != nil
}
