package command

import (
	"os/exec"
	"testing"
)

// A shell makes the same text of what is pasted, which has nothing that acts on a terminal.
func TestPasted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"orders":         "orders",
		"a/b.c:d@e-f":    "a/b.c:d@e-f",
		"":               "''",
		"-x":             "'-x'",
		"my queue":       "'my queue'",
		"it's $(reboot)": `'it'\''s $(reboot)'`,
		"a\x1b[2J'\"\n":  `$'a\x1b[2J\'"\n'`,
		"größe":          "'größe'",
	} {
		got := pasted(text)
		if got != want {
			t.Errorf("%q became %s, want %s", text, got, want)
		}
		output, err := exec.CommandContext(t.Context(), "bash", "-c", "printf %s "+got).Output()
		if err != nil || string(output) != text {
			t.Errorf("bash makes %q of %s: %v", output, got, err)
		}
	}
}
