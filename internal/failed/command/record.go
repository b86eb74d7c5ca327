package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

// Event is when a record is written.
type Event string

// Events of a run. One that was killed has no end.
const (
	Begin Event = "begin"
	End   Event = "end"
)

// Record is what is kept of a run that changes something.
type Record struct {
	At    time.Time `json:"at"`
	Event Event     `json:"event"`
	// Run is the same in the records of a run.
	Run     string `json:"run"`
	Command string `json:"command"`
	// User is the broker's.
	User   string `json:"user"`
	Vhost  string `json:"vhost"`
	Queue  string `json:"queue"`
	To     string `json:"to,omitempty"`
	Filter any    `json:"filter,omitempty"`
	// ReplayID is in the header of what was replayed.
	ReplayID string `json:"replay_id,omitempty"`
	// Counts are those of what is meant, in the beginning, and of what was done, in the end.
	Counts map[string]int `json:"counts"`
	Error  string         `json:"error,omitempty"`
}

const onlyOwner = 0o600

// canRecord is an error if no record can be written to this file: what was done could not be told afterwards. Nor may it be
// one of the others, which are read or written otherwise.
func canRecord(name string, others ...interface{ Stat() (os.FileInfo, error) }) error {
	if name == "" {
		return nil
	}
	f, err := openRecord(name)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	ours, err := f.Stat()
	if err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	for _, other := range others {
		if info, err := other.Stat(); err == nil && os.SameFile(ours, info) {
			return fmt.Errorf("--record: %s is the file of the messages: choose another name", name)
		}
	}
	return nil
}

func openRecord(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if err != nil {
		return nil, fmt.Errorf("--record: %w", err)
	}
	return f, nil
}

// record writes a record to a file, or to stderr if no file is named: who reads along at a terminal has the summary.
func (t *terminal) record(r Record, file string) error {
	if file == "" && isTerminal(t.err) {
		return nil
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if file == "" {
		// JSON has the same escapes, but for one.
		text := failed.Printable(strings.ReplaceAll(string(line), "\x7f", `\u007f`))
		if _, err = io.WriteString(t.err, text); err != nil {
			err = fmt.Errorf("write the record of the run to stderr: %w", err)
		}
		return err
	}
	f, err := openRecord(file)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	if err = cmp.Or(err, f.Close()); err != nil {
		return fmt.Errorf("--record: %w", err)
	}
	return nil
}
