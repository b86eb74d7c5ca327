package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/metrics"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/probe"
)

// Environment variables.
const (
	envListen    = "RABBITMQ_RETRY_LISTEN"
	envLogFormat = "RABBITMQ_RETRY_LOG_FORMAT"
	envLogLevel  = "RABBITMQ_RETRY_LOG_LEVEL"
)

// observation has the worker's logs, metrics and health checks.
type observation struct {
	listen, logFormat, logLevel string
	// level is the parsed logLevel.
	level slog.Level
}

func (o *observation) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "",
		"`address` for /healthz, /readyz and /metrics, such as 15695 (loopback) or 0.0.0.0:15695 (default: $"+envListen+", or none)")
	flags.StringVar(&o.logFormat, "log-format", "", "text or json (default: $"+envLogFormat+", or text)")
	flags.StringVar(&o.logLevel, "log-level", "",
		"debug (a line per message), info, warn or error (default: $"+envLogLevel+", or info)")
}

// complete reads the environment for flags that are not set, and checks all values. Its errors do not quote values, since one
// can be a URI in the wrong place.
func (o *observation) complete(getenv func(string) string) (err error) {
	from := func(value *string, flag, env string) string {
		if *value != "" {
			return flag
		}
		*value = getenv(env)
		return "$" + env
	}
	if name := from(&o.listen, "--listen", envListen); o.listen != "" {
		if o.listen, err = probe.ParseAddress(o.listen); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if name := from(&o.logFormat, "--log-format", envLogFormat); !slices.Contains([]string{"", "text", "json"}, o.logFormat) {
		return fmt.Errorf("%s: must be text or json", name)
	}
	if name := from(&o.logLevel, "--log-level", envLogLevel); o.logLevel != "" && o.level.UnmarshalText([]byte(o.logLevel)) != nil {
		return fmt.Errorf("%s: must be debug, info, warn or error", name)
	}
	return nil
}

func (o *observation) logger(out io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: o.level}
	if o.logFormat == "json" {
		options.ReplaceAttr = asText
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// asText writes durations and addresses as the text format does, so JSON has "282ms", too.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case time.Duration, net.Addr:
		a.Value = slog.StringValue(fmt.Sprint(value))
	}
	return a
}

// serve answers probes and scrapes, if they are enabled, until stop is called.
func (o *observation) serve(ctx context.Context, set *metrics.Set, log *slog.Logger) (stop func(), err error) {
	if o.listen == "" {
		return func() {}, nil
	}
	listener, err := probe.Listen(ctx, o.listen)
	if err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	log.Info("serving /healthz, /readyz and /metrics", "address", listener.Addr())
	return probe.Serve(ctx, listener, probe.Handler(ctx, set), log), nil
}
