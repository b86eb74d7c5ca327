package coalesce_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn/coalesce"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/brokertest"
)

// stepwise is a connection whose writes wait for the test.
type stepwise struct {
	net.Conn
	steps  chan error
	writes chan []byte
	closed atomic.Bool
}

func newStepwise() *stepwise {
	return &stepwise{steps: make(chan error), writes: make(chan []byte, 100)}
}

func (s *stepwise) Write(p []byte) (int, error) {
	if err := <-s.steps; err != nil {
		return 0, err
	}
	s.writes <- bytes.Clone(p)
	return len(p), nil
}

func (s *stepwise) Close() error {
	s.closed.Store(true)
	return nil
}

// let allows one write, or fails it.
func (s *stepwise) let(t *testing.T, err error) {
	t.Helper()
	select {
	case s.steps <- err:
	case <-brokertest.Bounded(t).Done():
		t.Fatal("nothing is written")
	}
}

func write(t *testing.T, c *coalesce.Conn, text string) {
	t.Helper()
	if n, err := c.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("wrote %d bytes of %q: %v", n, text, err)
	}
}

// Data that is written during a write goes out together, and in order.
func TestWritesGoTogether(t *testing.T) {
	t.Parallel()
	under := newStepwise()
	c := coalesce.New(under)
	write(t, c, "first ")
	under.let(t, nil)
	if got := <-under.writes; string(got) != "first " {
		t.Fatalf("wrote %q", got)
	}
	for range 2 { // the second time reuses the memory
		var want string
		for i := range 20 {
			part := string(rune('a' + i))
			write(t, c, part)
			want += part
		}
		// The sender took some of the writes before it waited.
		under.let(t, nil)
		got := <-under.writes
		if len(got) < len(want) {
			under.let(t, nil)
			got = append(got, <-under.writes...)
		}
		require.Equal(t, want, string(got))
	}
	if err := c.Close(); err != nil || !under.closed.Load() {
		t.Errorf("closed: %t, %v", under.closed.Load(), err)
	}
}

// A single write does not wait for more.
func TestASingleWriteGoesAtOnce(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	c := coalesce.New(ours)
	t.Cleanup(func() { _ = c.Close() })
	for range 3 {
		write(t, c, "x")
		require.NoError(t, theirs.SetReadDeadline(time.Now().Add(brokertest.Patience)))
		if _, err := io.ReadFull(theirs, make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
}

// Data that is written before the close arrives.
func TestClosingSendsTheRest(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	received := make(chan []byte)
	go func() {
		all, _ := io.ReadAll(theirs)
		received <- all
	}()
	c := coalesce.New(ours)
	want := bytes.Repeat([]byte("0123456789"), 5000)
	for part := range slicesOf(want, 100) {
		write(t, c, string(part))
	}
	require.NoError(t, c.Close())
	if got := <-received; !bytes.Equal(got, want) {
		t.Errorf("%d bytes arrived, want %d", len(got), len(want))
	}
	if _, err := c.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("writing to a closed connection: %v", err)
	}
}

func slicesOf(data []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for ; len(data) > 0 && yield(data[:n]); data = data[n:] {
		}
	}
}

// Writers notice a peer that does not read, and a deadline ends their wait.
func TestWritersWaitForThePeer(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	c := coalesce.New(ours)
	t.Cleanup(func() { _ = c.Close() })
	failed := make(chan error)
	var written atomic.Int64
	go func() {
		for {
			n, err := c.Write(make([]byte, 1<<10))
			if written.Add(int64(n)); err != nil {
				failed <- err
				return
			}
		}
	}()
	if err, came := brokertest.Within(failed, 100*time.Millisecond); came {
		t.Fatalf("failed without a deadline: %v", err)
	}
	if n := written.Load(); n > 1<<20 {
		t.Errorf("%d bytes were taken that nobody reads", n)
	}
	require.NoError(t, c.SetWriteDeadline(time.Now()))
	err := brokertest.Receive(t, failed)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("failed with %v, want the time-out", err)
	}
}

// A peer that does not read cannot keep the connection open either.
func TestClosingWaitsAMomentOnly(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = theirs.Close() })
	c := coalesce.New(ours)
	write(t, c, "nobody reads this")
	began := time.Now()
	require.NoError(t, c.Close())
	if took := time.Since(began); took > brokertest.Patience {
		t.Errorf("closing took %s", took)
	}
}

// The client moves the read deadline with each frame, also while it waits for the answer to its closing.
func TestReadDeadlineDoesNotPutTheOtherOff(t *testing.T) {
	t.Parallel()
	for name, later := range map[string]time.Time{"later": time.Now().Add(time.Hour), "none": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ours, theirs := net.Pipe()
			c := coalesce.New(ours)
			t.Cleanup(func() { _, _ = theirs.Close(), c.Close() })
			require.NoError(t, errors.Join(c.SetDeadline(time.Now()), c.SetReadDeadline(later)))
			defer time.AfterFunc(brokertest.Patience, func() { _ = theirs.Close() }).Stop()
			if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading: %v", err)
			}
			require.NoError(t, errors.Join(c.SetDeadline(time.Time{}), c.SetReadDeadline(later)))
			go func() { _, _ = theirs.Write([]byte("x")) }()
			if _, err := c.Read(make([]byte, 1)); err != nil {
				t.Errorf("reading without a deadline: %v", err)
			}
		})
	}
}

// A failed write ends the connection for readers and writers.
func TestFailureEndsTheConnection(t *testing.T) {
	t.Parallel()
	under, broken := newStepwise(), errors.New("broken")
	c := coalesce.New(under)
	write(t, c, "x")
	under.let(t, broken)
	deadline := time.Now().Add(brokertest.Patience)
	for {
		if _, err := c.Write([]byte("y")); err != nil {
			require.ErrorIs(t, err, broken)
			break
		}
		require.False(t, time.Now().After(deadline), "writes go on")
	}
	require.True(t, under.closed.Load(), "the connection is still open: nobody who reads learns of it")
}
