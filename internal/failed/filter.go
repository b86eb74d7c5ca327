package failed

import "time"

// Filter says which messages are meant; its zero value means all of them. A message has to match each field
// that is set, and any one element of a list.
type Filter struct {
	Reasons []string `json:"reasons,omitempty"`
	// FromQueues are work queues.
	FromQueues []string `json:"from_queues,omitempty"`
	// Since and Until bound FailedAt. A message without a time is not within any bounds.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Headers are all to be there.
	Headers []Header `json:"headers,omitempty"`
	// RoutingKey is a pattern in which * stands for any text and ? for any character.
	RoutingKey string   `json:"routing_key,omitempty"`
	MessageIDs []string `json:"message_ids,omitempty"`
	// Error is a part of the error or exception, in whatever case.
	Error string `json:"error,omitempty"`
	// Runs are those of imports.
	Runs []string `json:"runs,omitempty"`
	// IDs are taken as often as they are listed, since equal messages share one; nil means any. What has not the form of an
	// id is a message-id, whose messages are all meant.
	IDs []string `json:"ids,omitempty"`
}

// Header is a header with its value as text.
type Header struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Selector applies a filter to the messages of one pass.
type Selector struct {
	// Timeless counts messages that were left out for having no time.
	Timeless int

	filter Filter
	// unseen are the message-ids that no message had.
	unseen map[string]bool
	// left is how often each id may still be taken.
	left map[string]int
}

// Selector begins a pass.
func (f Filter) Selector() *Selector {
	s := &Selector{filter: f, unseen: make(map[string]bool, len(f.MessageIDs))}
	for _, id := range f.MessageIDs {
		s.unseen[id] = true
	}
	if f.IDs != nil {
		s.left = make(map[string]int, len(f.IDs))
	}
	for _, id := range f.IDs {
		if s.left[id]++; !IsID(id) {
			s.unseen[id] = true
		}
	}
	return s
}
