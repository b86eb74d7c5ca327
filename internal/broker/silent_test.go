package broker

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"time"
)

// A server that accepts connections and says nothing is asked once more, and then is an error.
func TestSilentServerIsAnError(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	asked := make(chan net.Conn, 10)
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			asked <- conn
		}
	}()
	client := repeating(&http.Client{Transport: whole{&http.Transport{DisableKeepAlives: true}}, Timeout: 200 * time.Millisecond})
	ctx := context.WithValue(t.Context(), readOnly{}, &reading{})
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+listener.Addr().String(), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Do(request)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("error %v, want a timeout", err)
	}
	if answer != nil {
		_ = answer.Body.Close()
	}
	if n := len(asked); n != maxTimeouts {
		t.Errorf("asked %d times, want %d", n, maxTimeouts)
	}
	for range len(asked) {
		_ = (<-asked).Close()
	}
}
