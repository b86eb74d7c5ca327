package topology

import (
	"strings"
	"unicode"
)

// composed reports whether Terraform keeps a text as it is behind any other: it normalizes all texts to NFC, which
// would make different objects equal. Doubt counts as no. The tables that tell exactly are a percent of the sidecar.
func composed(text string) bool { return !strings.ContainsFunc(text, mayCompose) }

// mayCompose reports whether NFC may replace a character, or join it with the one before.
func mayCompose(r rune) bool {
	const firstCombining = 0x300
	return r >= firstCombining && (unicode.Is(unicode.M, r) || unicode.Is(replaced, r) || !unicode.IsGraphic(r))
}

// replaced has the blocks of characters besides marks that NFC replaces or joins.
var replaced = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x0374, Hi: 0x0387, Stride: 1}, // Greek punctuation
		{Lo: 0x0958, Hi: 0x095f, Stride: 1}, // Indic letters with a nukta
		{Lo: 0x09dc, Hi: 0x09df, Stride: 1},
		{Lo: 0x0a33, Hi: 0x0a5e, Stride: 1},
		{Lo: 0x0b5c, Hi: 0x0b5d, Stride: 1},
		{Lo: 0x0f43, Hi: 0x0f69, Stride: 1}, // Tibetan
		{Lo: 0x1160, Hi: 0x11ff, Stride: 1}, // Hangul vowels and finals
		{Lo: 0x1f71, Hi: 0x1ffd, Stride: 1}, // Greek with oxia
		{Lo: 0x2000, Hi: 0x2001, Stride: 1},
		{Lo: 0x2126, Hi: 0x212b, Stride: 1}, // ohm, kelvin, angstrom
		{Lo: 0x2329, Hi: 0x232a, Stride: 1},
		{Lo: 0x2adc, Hi: 0x2adc, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, // CJK compatibility
		{Lo: 0xfb1d, Hi: 0xfb4f, Stride: 1}, // Hebrew
	},
	R32: []unicode.Range32{
		{Lo: 0x1d15e, Hi: 0x1d1c0, Stride: 1}, // musical symbols
		{Lo: 0x2f800, Hi: 0x2fa1f, Stride: 1}, // CJK compatibility
	},
}
