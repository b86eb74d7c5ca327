package configured

import (
	"context"
	"sync"
	"time"
)

// remembered is an answer that serves one operation.
type remembered struct {
	begun time.Time
	once  sync.Once
	value any
	err   error
}

// Once asks the broker once per operation, until a write, and remembers the answer under a name. An error is not remembered.
func Once[T any](ctx context.Context, s *Provider, name string, ask func(context.Context) (T, error)) (T, error) {
	s.mutex.Lock()
	of := s.operation
	r := of.remembered[name]
	if r == nil {
		r = &remembered{begun: time.Now()}
		of.remembered[name] = r
	}
	s.mutex.Unlock()
	r.once.Do(func() {
		if r.value, r.err = ask(ctx); r.err != nil {
			s.mutex.Lock()
			delete(of.remembered, name)
			s.mutex.Unlock()
		}
	})
	value, _ := r.value.(T)
	return value, r.err
}

// Recently is Once with an answer that serves for a moment, even after a write.
func Recently[T any](ctx context.Context, s *Provider, name string, ask func(context.Context) (T, error)) (T, error) {
	name = Lasting + name
	s.mutex.Lock()
	if r := s.operation.remembered[name]; r != nil && time.Since(r.begun) >= recently {
		delete(s.operation.remembered, name)
	}
	s.mutex.Unlock()
	return Once(ctx, s, name, ask)
}

// Lasting begins the names of answers that a write does not make outdated.
const Lasting = "lasting "
