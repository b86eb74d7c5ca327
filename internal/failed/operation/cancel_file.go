package operation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/file"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/transfer"
)

// CancelFile is a file with cancelled messages. Each line says how far the cancellation is, also after a kill.
type CancelFile struct {
	*os.File
	size int64
	// lines has, by the id of a message, where its lines have their state.
	lines map[string][]int64
	// Open has the ids of the messages that a killed command left undecided, and done the lines that can be imported.
	Open []string
	done []int64
}

// NewCancelFile begins with an empty file.
func NewCancelFile(f *os.File) *CancelFile { return &CancelFile{File: f, lines: map[string][]int64{}} }

// Encode is for a [Sink] with all lines.
func (c *CancelFile) Encode(m failed.Message, id string) ([]byte, error) {
	text, err := file.Encode(m, failed.Digest(m))
	if err != nil {
		return nil, err
	}
	line, at := file.EncodeCancelled(text)
	c.lines[id] = append(c.lines[id], c.size+int64(at))
	c.size += int64(len(line)) + 1
	return line, nil
}

// next is the next line of a message.
func (c *CancelFile) next(e *failed.Entry) int64 {
	line := c.lines[e.ID][0]
	c.lines[e.ID] = c.lines[e.ID][1:]
	return line
}

// set writes the state of lines to the disk.
func (c *CancelFile) set(s file.State, lines ...int64) error {
	for _, at := range lines {
		if _, err := c.WriteAt([]byte(s), at); err != nil {
			return err
		}
	}
	return c.Sync()
}

// ReadCancelFile reads the states of all lines. The messages must come from the delayed exchange.
func ReadCancelFile(f *os.File, n delayed.Names) (*CancelFile, error) {
	c := NewCancelFile(f)
	for reader := file.NewReader(f); ; {
		m, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return nil, err
		}
		level, is := n.LevelOf(m.Queue)
		if !is || reader.Cancel == "" {
			return nil, fmt.Errorf("line %d: is no cancelled message of %q", reader.Line, n)
		}
		switch reader.Cancel {
		case file.Done:
			c.done = append(c.done, reader.CancelAt)
		case file.Begun, file.Returning:
			e := failed.ReadWaiting(m, level, n, time.Now())
			c.Open = append(c.Open, e.ID)
			c.lines[e.ID] = append(c.lines[e.ID], reader.CancelAt)
		case file.Kept, file.Returned:
		}
	}
}

// Done is how many messages can be imported.
func (c *CancelFile) Done() int { return len(c.done) }

// Settle leaves those open messages out that a level within reach has.
func (c *CancelFile) Settle(ctx context.Context, w *Waiting) error {
	if len(c.Open) == 0 {
		return nil
	}
	var kept []int64
	_, err := w.Look(ctx, failed.Filter{}, func(e *failed.Entry) (enough bool) {
		kept = append(kept, c.lines[e.ID]...)
		delete(c.lines, e.ID)
		return false
	})
	c.Open = slices.DeleteFunc(c.Open, func(id string) bool { return len(c.lines[id]) == 0 })
	return errors.Join(err, c.set(file.Kept, kept...))
}

// Import publishes the messages that were taken out, so that they are due as before.
func (c *CancelFile) Import(ctx context.Context, w *Waiting, frameMax int, progress func(transfer.Progress)) (transfer.Result, error) {
	if _, err := c.Seek(0, io.SeekStart); err != nil {
		return transfer.Result{}, err
	}
	reader, next, begun := file.NewReader(c), 0, 0
	result, err := transfer.Send(ctx, w.queue(), transfer.Sending{
		Next: func() (p failed.Publishing, ok bool, err error) {
			if next == len(c.done) {
				return p, false, nil
			}
			if next == begun {
				begun = min(begun+transfer.Window, len(c.done))
				if err := c.set(file.Returning, c.done[next:begun]...); err != nil {
					return p, false, err
				}
			}
			m, err := reader.Next()
			for err == nil && reader.CancelAt != c.done[next] {
				m, err = reader.Next()
			}
			if err != nil {
				return p, false, err
			}
			level, _ := w.Delayed.LevelOf(m.Queue)
			e := failed.ReadWaiting(m, level, w.Delayed, time.Now())
			p, err = failed.Again(m, w.Delayed, e.Due, time.Now(), frameMax)
			p.Line, p.Of = reader.Line, strconv.Itoa(next)
			next++
			return p, true, err
		},
		Done: func(p failed.Publishing, confirmed bool) {
			state := file.Done
			if confirmed {
				state = file.Returned
			}
			i, _ := strconv.Atoi(p.Of)
			_, _ = c.WriteAt([]byte(state), c.done[i]) // an import that is repeated would name it
		},
		Progress: progress,
	})
	return result, cmp.Or(err, c.set(file.Done, c.done[next:begun]...))
}
