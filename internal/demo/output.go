package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// output prints the demo's events, with colour on a terminal.
type output struct {
	writer  io.Writer
	colour  bool
	started time.Time
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func newOutput(file *os.File) *output {
	info, err := file.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	_, noColour := os.LookupEnv("NO_COLOR")
	return &output{writer: file, colour: terminal && !noColour, started: time.Now()}
}

func (o *output) elapsed() time.Duration { return time.Since(o.started).Round(time.Second / 10) }

// step prints the heading of the next step.
func (o *output) step(format string, args ...any) {
	o.print(bold, "\n"+fmt.Sprintf(format, args...))
}

// line prints a line, indented below a step.
func (o *output) line(format string, args ...any) { o.print("", "  "+fmt.Sprintf(format, args...)) }

// faint prints a less important line.
func (o *output) faint(format string, args ...any) { o.print(dim, "  "+fmt.Sprintf(format, args...)) }

func (o *output) good(format string, args ...any) { o.print(green, fmt.Sprintf(format, args...)) }

func (o *output) bad(format string, args ...any) { o.print(red, fmt.Sprintf(format, args...)) }

// event prints a line of the time line.
func (o *output) event(at time.Duration, message, attempt, what, colour string) {
	o.print(colour, fmt.Sprintf("  %6.2fs  %-10s  %-14s  %s", at.Seconds(), message, attempt, what))
}

func (o *output) print(colour, text string) {
	if o.colour && colour != "" {
		text = "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	_, _ = fmt.Fprintln(o.writer, text)
}
