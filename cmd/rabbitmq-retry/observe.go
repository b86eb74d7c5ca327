package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
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

// observation is what the worker lets others see.
type observation struct {
	listen, logFormat, logLevel string
}

func (o *observation) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.listen, "listen", "",
		"`address` for /healthz, /readyz and /metrics, such as 15695 (loopback) or 0.0.0.0:15695 (default: $"+envListen+", or not at all)")
	flags.StringVar(&o.logFormat, "log-format", "", "text or json (default: $"+envLogFormat+", or text)")
	flags.StringVar(&o.logLevel, "log-level", "",
		"debug, with a line per message, info, warn or error (default: $"+envLogLevel+", or info)")
}

// complete takes from the environment what no flag says, and checks all of it. Errors do not quote
// values: one may be a URI in the wrong place.
func (o *observation) complete(getenv func(string) string) error {
	for _, s := range []struct {
		flag, env string
		value     *string
		check     func() error
	}{
		{"--listen", envListen, &o.listen, o.checkListen},
		{"--log-format", envLogFormat, &o.logFormat, o.checkLogFormat},
		{"--log-level", envLogLevel, &o.logLevel, o.checkLogLevel},
	} {
		name := s.flag
		if *s.value == "" {
			name, *s.value = "$"+s.env, getenv(s.env)
		}
		if *s.value == "" {
			continue
		}
		if err := s.check(); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func (o *observation) checkListen() (err error) {
	o.listen, err = probe.ParseAddress(o.listen)
	return err
}

func (o *observation) checkLogFormat() error {
	if o.logFormat != "text" && o.logFormat != "json" {
		return errors.New("is not a format: write text or json")
	}
	return nil
}

func (o *observation) checkLogLevel() error {
	if new(slog.Level).UnmarshalText([]byte(o.logLevel)) != nil {
		return errors.New("is not a level: write debug, info, warn or error")
	}
	return nil
}

func (o *observation) logger(out io.Writer) *slog.Logger {
	var level slog.Level // info
	if o.logLevel != "" {
		_ = level.UnmarshalText([]byte(o.logLevel)) // was checked
	}
	options := &slog.HandlerOptions{Level: level}
	if o.logFormat == "json" {
		options.ReplaceAttr = asText
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// asText writes durations and addresses as the text format does: "282ms" in JSON, too.
func asText(_ []string, a slog.Attr) slog.Attr {
	switch value := a.Value.Any().(type) {
	case time.Duration:
		a.Value = slog.StringValue(value.String())
	case net.Addr:
		a.Value = slog.StringValue(value.String())
	}
	return a
}

// serve answers probes and scrapes, if that is wanted, until stop is called.
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
