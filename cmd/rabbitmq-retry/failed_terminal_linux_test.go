package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// terminal records its output, and types nothing.
func terminal(t *testing.T) (slave, master *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = master.Close() })
	const unlock, getNumber = 0x40045431, 0x80045430 // TIOCSPTLCK, TIOCGPTN
	var zero, number int32
	for request, argument := range map[uintptr]*int32{unlock: &zero, getNumber: &number} {
		_, _, e := syscall.Syscall(syscall.SYS_IOCTL, master.Fd(), request, uintptr(unsafe.Pointer(argument)))
		require.Zero(t, e)
	}
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = slave.Close() })
	return slave, master
}

// A signal during a question means no, so nothing changes.
func TestSignalAtTheQuestion(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	const messages = 3
	for i := range messages {
		o.park(t, "exhausted", fmt.Sprint(i))
	}
	for _, args := range [][]string{
		{"failed", "replay", "orders", "--all"},
		{"failed", "delete", "orders", "--all", "--discard"},
	} {
		program := o.program(t, args...)
		program.Stdin, _ = terminal(t)
		errs, err := program.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, program.Start())
		var text strings.Builder
		for r := bufio.NewReader(errs); ; {
			c, err := r.ReadByte()
			if err != nil {
				break
			}
			text.WriteByte(c)
			if strings.HasSuffix(text.String(), "3 messages to orders.created? [y/N] ") || strings.HasSuffix(text.String(), "Delete 3 messages (nothing is kept)? [y/N] ") {
				require.NoError(t, program.Process.Signal(syscall.SIGTERM))
			}
		}
		_ = program.Wait()
		assert.Equalf(t, exitError, program.ProcessState.ExitCode(), "%v: %s", args, program.ProcessState)
		contains(t, text.String(), "nothing was changed")
		assert.NotContains(t, text.String(), `"event"`)
		o.holds(t, "orders.failed", messages)
	}
}

// At a terminal, a run without a named file writes only the summary, and no record.
func TestNoRecordAtATerminal(t *testing.T) {
	t.Parallel()
	o := newOrders(t, "classic")
	o.park(t, "exhausted", "order-1")
	program := o.program(t, "failed", "replay", "orders", "--all", "--yes")
	slave, master := terminal(t)
	program.Stderr = slave
	require.NoError(t, program.Run())
	_, _ = fmt.Fprintln(slave, "the end")
	var text strings.Builder
	for r := bufio.NewReader(master); !strings.Contains(text.String(), "the end"); {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		text.WriteString(line)
	}
	contains(t, text.String(), "replayed 1 of 1 to orders.created")
	assert.NotContains(t, text.String(), `"event"`)
}
