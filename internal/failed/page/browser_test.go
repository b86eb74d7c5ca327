//go:build browser

package page

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/audit"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

var screenshots = flag.String("screenshots", "", "folder for the guide's screenshots")

// tab is a tab of a private Chromium, with what a page did in it.
type tab struct {
	context.Context //nolint:containedctx // to chromedp, a tab is a context
	mu              sync.Mutex
	did             []string
	file            string
}

func newTab(t *testing.T) *tab {
	t.Helper()
	browser, stop := chromedp.NewExecAllocator(t.Context(), chromedp.ExecPath(os.Getenv("CHROMIUM")), chromedp.Headless, chromedp.NoSandbox,
		chromedp.Flag("force-color-profile", "srgb"))
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	b := &tab{Context: ctx, file: filepath.Join(t.TempDir(), "page.html")}
	require.NoError(t, chromedp.Do(ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, network.Enable, network.EnableParams{})
		if err == nil {
			_, err = cdp.Call(ctx, target, log.Enable, cdp.Empty{})
		}
		return err
	})))
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *page.EventJavascriptDialogOpening:
			b.did = append(b.did, "dialog "+e.Message)
		case *network.EventRequestWillBeSent:
			if !strings.HasSuffix(e.Request.URL, filepath.Base(b.file)) {
				b.did = append(b.did, "request "+e.Request.URL)
			}
		case *log.EventEntryAdded:
			b.did = append(b.did, "log "+e.Entry.Text)
		}
	}))
	return b
}

// open shows a page, and returns what it did, apart from being shown.
func (b *tab) open(t *testing.T, text string) []string {
	t.Helper()
	require.NoError(t, os.WriteFile(b.file, []byte(text), 0o600))
	b.mu.Lock()
	b.did = nil
	b.mu.Unlock()
	require.NoError(t, chromedp.Do(b, chromedp.Navigate((&url.URL{Scheme: "file", Path: b.file}).String())))
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.did
}

// evaluate is the value of an expression in the page.
func evaluate[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	value, err := chromedp.Run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return value
}

// harm is what a page does that it should not do, if a text is in it this often.
func harm(t *testing.T, b *tab, text, payload string, times int) []string {
	t.Helper()
	found := b.open(t, text)
	names, err := chromedp.Run(b, chromedp.Evaluate[[]string](`[...document.querySelectorAll("body *")].map(e => e.localName)`))
	if err != nil {
		return append(found, err.Error())
	}
	for _, name := range names {
		if !slices.Contains(own.elements, name) {
			found = append(found, "<"+name)
		}
	}
	shown, err := chromedp.Run(b, chromedp.Evaluate[string](`document.title + "\n" + document.body.textContent`))
	if err != nil {
		return append(found, err.Error())
	}
	if n := strings.Count(shown, failed.Printable(payload)); n < times {
		found = append(found, fmt.Sprintf("the text is there %d times, not %d", n, times))
	}
	return found
}

// places is how often each page has the text.
const places, placesOverview = 12, 10

func TestBrowserTakesNothingForMarkup(t *testing.T) { //nolint:paralleltest // switches the escaping off
	b := newTab(t)
	for _, payload := range payloads {
		assert.Empty(t, harm(t, b, attacked(t, payload), payload, places), payload)
		assert.Empty(t, harm(t, b, attackedOverview(t, payload), payload, placesOverview), payload)
	}
	usual := escape
	defer func() { escape = usual }()
	escape = func(text string) string { return text }
	var harmful int
	for _, payload := range payloads {
		if len(harm(t, b, attacked(t, payload), payload, places)) > 0 {
			harmful++
		}
	}
	assert.GreaterOrEqual(t, harmful, 28, "without escaping, the test finds too little")
}

// prepared is the page of an incident with three kinds of failures.
func prepared(t *testing.T, messages int) *Incident {
	t.Helper()
	p := incident(t)
	for i := range messages {
		m := parked(i, fmt.Sprintf("StockUnavailable: order %d", i), fmt.Sprintf(`{"order":%d,"items":[{"sku":"A-1","count":2}],"note":"%s"}`,
			i, strings.Repeat("x", 900)))
		switch {
		case i%50 == 0:
			m = parked(i, "", `{"order":1}`, [2]string{"dead-letter-reason", "too_old"})
		case i%300 == 1:
			m = parked(i, "PaymentError: card 4711 expired", "\xff\x00binary")
		}
		e := failed.Read(m)
		p.Collect(&e)
	}
	p.Seen, p.Selected, p.Ready = messages, messages, messages
	return p
}

func overview() *Overview {
	n := func(n int) *int { return &n }
	return &Overview{
		Broker: "amqp://localhost:5672", At: at,
		Summaries: []operation.Summary{{Vhost: "/", Name: "orders", Kind: operation.KindPipeline, Queues: []operation.QueueStatus{
			{Queue: "orders.inbox", Role: operation.Receives, Ready: n(913), Consumers: n(0), Note: "no consumer: is a worker running?"},
			{Queue: "orders.retry.5s", Role: operation.Waits, Ready: n(12), Consumers: n(0)},
			{Queue: "orders.failed", Role: operation.Parks, Ready: n(5000), Consumers: n(0), Oldest: at},
		}, Note: "orders.inbox: no consumer: is a worker running?"}},
		Audits: []Audit{{"/", []audit.Finding{{
			Severity: audit.Error, Rule: "dead-letter-exchange-missing", Object: audit.Object{Kind: "queue", Name: "billing"},
			Message: "Its dead-letter exchange \"billing.dlx\" does not exist.", Remedy: "Declare the exchange.",
		}}}},
	}
}

func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	axe, err := os.ReadFile(os.Getenv("AXE"))
	require.NoError(t, err, "AXE is the file of axe-core")
	b := newTab(t)
	media := func(name, scheme string) {
		require.NoError(t, chromedp.Do(b, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
				Media: name, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
			})
			return err
		})))
	}
	viewport := func(width int64) { require.NoError(t, chromedp.Do(b, chromedp.EmulateViewport(width, 900))) }
	for name, text := range map[string]string{
		"incident": rendered(t, prepared(t, 5000).Write), "overview": rendered(t, overview().Write),
	} {
		assert.Empty(t, b.open(t, text), name)
		evaluate[bool](t, b, string(axe)+"; true")
		for _, scheme := range []string{"light", "dark"} {
			for _, width := range []int64{1200, 400} {
				viewport(width)
				media("", scheme)
				evaluate[int](t, b, `document.querySelectorAll("details").forEach((d, i) => d.open = i == 0); 1`)
				found := evaluate[[]string](t, b, `axe.run().then(r => r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html).slice(0, 3)))`)
				assert.Emptyf(t, found, "%s, %s, %d", name, scheme, width)
				b.screenshot(t, fmt.Sprintf("%s-%s-%d", name, scheme, width))
				wide := evaluate[int64](t, b, `document.scrollingElement.scrollWidth`)
				assert.LessOrEqualf(t, wide, width, "%s, %s: the page is wider than the window", name, scheme)
			}
		}
		media("print", "light")
		hidden := evaluate[int](t, b, `[...document.querySelectorAll("details pre")].filter(e => !e.checkVisibility({contentVisibilityAuto: true}) || e.getBoundingClientRect().height == 0).length`)
		assert.Zerof(t, hidden, "%s: on paper, parts of messages are hidden", name)
	}
}

// screenshot writes a picture for the guide, if a folder is named.
func (b *tab) screenshot(t *testing.T, name string) {
	t.Helper()
	if *screenshots == "" {
		return
	}
	height := evaluate[int64](t, b, "Math.ceil(document.body.getBoundingClientRect().height)")
	require.NoError(t, chromedp.Do(b, chromedp.EmulateViewport(evaluate[int64](t, b, "innerWidth"), min(900, height))))
	picture, err := chromedp.Run(b, chromedp.CaptureScreenshot())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(*screenshots, name+".png"), picture, 0o600))
}

// A page of 40,000 messages is as quick to open as one of 100.
func TestLargePageOpens(t *testing.T) {
	t.Parallel()
	b := newTab(t)
	text := rendered(t, prepared(t, 40_000).Write)
	began := time.Now()
	assert.Empty(t, b.open(t, text))
	t.Logf("%d KiB, opened in %v", len(text)>>10, time.Since(began))
	assert.Less(t, len(text), 1<<20)
}
