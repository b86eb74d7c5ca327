package session

import "context"

// Making waits until no other creation of this process makes one of these objects. Of two that list a vhost at the same
// moment, neither would find the other's objects, and brokers can tell both that an object is new.
func (s *Session) Making(ctx context.Context, objects []string) (made func(), err error) {
	mine := make(chan struct{})
	for {
		other := s.begin(objects, mine)
		if other == nil {
			return func() { s.end(objects, mine) }, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-other:
		}
	}
}

// begin takes all of the objects, or returns a creation that makes one of them now.
func (s *Session) begin(objects []string, mine chan struct{}) (other chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, object := range objects {
		if other, making := s.making[object]; making {
			return other
		}
	}
	for _, object := range objects {
		s.making[object] = mine
	}
	return nil
}

func (s *Session) end(objects []string, mine chan struct{}) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	for _, object := range objects {
		delete(s.making, object)
	}
	close(mine)
}
