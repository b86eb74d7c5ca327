package console

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// Record is what is kept of a run that changed something.
type Record struct {
	At      time.Time `json:"at"`
	Command string    `json:"command"`
	// User is the broker's.
	User   string `json:"user"`
	Vhost  string `json:"vhost"`
	Queue  string `json:"queue"`
	To     string `json:"to,omitempty"`
	Filter any    `json:"filter,omitempty"`
	// ReplayID is in the header of what was replayed.
	ReplayID string         `json:"replay_id,omitempty"`
	Counts   map[string]int `json:"counts"`
	Error    string         `json:"error,omitempty"`
}

const onlyOwner = 0o600

// CanAudit is an error if no record can be written to this file: what was done could not be told afterwards.
func CanAudit(file string) error {
	if file == "" {
		return nil
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	return f.Close()
}

// Audit writes a record to a file, or to stderr if no file is named.
func (c *Console) Audit(r Record, file string) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if file == "" {
		c.Line("")
		_, err = c.Err.Write(line)
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, onlyOwner) //nolint:gosec // the user says which
	if err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	_, err = f.Write(line)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("--audit-log: %w", err)
	}
	return nil
}
