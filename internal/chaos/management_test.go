//go:build chaos

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"
)

// queue is what the management API says of one. The counts are absent when nobody knows them.
type queue struct {
	Name           string   `json:"name"`
	State          string   `json:"state"`
	Leader         string   `json:"leader"`
	Members        []string `json:"members"`
	Online         []string `json:"online"`
	Messages       *int     `json:"messages"`
	MessagesHeld   int      `json:"messages_dlx"`
	Unacknowledged int      `json:"messages_unacknowledged"`
}

func (a *application) queues(ctx context.Context) (queues []queue, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, a.Endpoint+a.Path("queues"), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.SetBasicAuth(a.Username, a.Password)
	request.Close = true
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	return queues, json.NewDecoder(answer.Body).Decode(&queues)
}

// holding describes the queues that hold messages, or may do so.
func (a *application) holding(ctx context.Context) (map[string]string, error) {
	queues, err := a.queues(ctx)
	held := map[string]string{}
	for _, q := range queues {
		switch {
		case q.Messages == nil:
			held[q.Name] = "unknown"
		case *q.Messages+q.MessagesHeld > 0:
			held[q.Name] = fmt.Sprintf("%d, of which unacknowledged %d; dead letters held %d", *q.Messages, q.Unacknowledged, q.MessagesHeld)
		}
	}
	return held, err
}

// awaitMembers waits until every queue has a leader and all of its members.
func (a *application) awaitMembers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		queues, err := a.queues(ctx)
		lacking := map[string]string{}
		for _, q := range queues {
			if len(q.Online) < len(q.Members) || !slices.Contains(q.Online, q.Leader) || q.State != "running" {
				lacking[q.Name] = fmt.Sprintf("%s, %d of %d", q.State, len(q.Online), len(q.Members))
			}
		}
		if err == nil && len(lacking) == 0 {
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("queues without all of their members after two minutes: %v, %w", slices.Sorted(maps.Keys(lacking)), errors.Join(err, ctx.Err()))
		}
		pause(ctx.Done(), 300*time.Millisecond)
	}
}
