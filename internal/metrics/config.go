package metrics

import (
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
)

// config is what is known about the configuration at work.
type config struct {
	generation int
	loadedAt   time.Time
	refused    bool
}

// ConfigLoaded notes that a configuration with these pipelines is at work from now on. What was known
// of pipelines that are not among them is forgotten.
func (s *Set) ConfigLoaded(pipelines []*deadletter.Pipeline) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = config{generation: s.config.generation + 1, loadedAt: time.Now()}
	kept := map[key]bool{}
	for _, p := range pipelines {
		k := keyOf(p)
		kept[k] = true
		if watched := s.pipelines[k]; watched != nil {
			watched.expect(p.Delays())
		} else {
			s.pipelines[k] = s.newPipeline(p)
		}
	}
	for k, p := range s.pipelines {
		if !kept[k] {
			s.forget(p)
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
