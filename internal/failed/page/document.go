// Package page writes self-contained HTML pages about failed messages and queues. A page has no scripts, makes no requests, and shows
// every byte of a message, a name or a broker as text.
package page

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
)

//go:embed style.css
var style string

// escape makes markup of a text.
var escape = html.EscapeString

// markup is text that a document does not escape.
type markup string

// document writes HTML.
type document struct{ to *bufio.Writer }

// put writes constant markup. It escapes its arguments, except numbers and [markup].
func (d document) put(constant markup, arguments ...any) {
	for i, argument := range arguments {
		switch a := argument.(type) {
		case string:
			arguments[i] = escape(failed.Printable(a))
		case int:
			arguments[i] = grouped(a)
		case int64:
			arguments[i] = strconv.FormatInt(a, 10)
		case *int:
			arguments[i] = "?"
			if a != nil {
				arguments[i] = grouped(*a)
			}
		case markup:
		default:
			panic(fmt.Sprintf("neither a text nor a number: %T", a))
		}
	}
	_, _ = fmt.Fprintf(d.to, string(constant), arguments...) // a bufio.Writer returns its error when it is flushed
}

// grouped is a number with a comma before each group of three digits.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// write writes a page with this title and main content.
func write(w io.Writer, title string, body func(document)) error {
	d := document{bufio.NewWriterSize(w, 1<<16)}
	hash := sha256.Sum256([]byte(style))
	d.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-%s'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="robots" content="noindex">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%s</title>
<style>%s</style>
</head>
<body>
<main>
`, base64.StdEncoding.EncodeToString(hash[:]), title, markup(style))
	body(d)
	d.put("</main>\n</body>\n</html>\n")
	return d.to.Flush()
}

// facts writes names and their values. It leaves out values that are empty.
func (d document) facts(pairs ...string) {
	for pair := range slices.Chunk(pairs, 2) {
		if pair[1] != "" {
			d.put("<dt>%s</dt><dd>%s</dd>\n", pair[0], clip(pair[1]))
		}
	}
}

// clip limits an error, a stack trace or the value of a header.
func clip(text string) string {
	const most = 8 << 10
	if len(text) <= most {
		return text
	}
	return string(whole([]byte(text[:most]))) + "… (cut)"
}

// moment is a time in UTC to the second.
func moment(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 UTC") }
