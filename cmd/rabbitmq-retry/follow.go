package main

import (
	"context"
	"os"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// follow returns the configurations that come after the first one.
func (s *source) follow(ctx context.Context, first []byte, hangups <-chan os.Signal, o worker.Options) <-chan workerconfig.Config {
	if s.config.File != "" {
		report := func(outcome reload.Outcome) { o.Metrics.ConfigRead(outcome.Err) }
		return reload.File{Path: s.config.File, Logger: o.Logger, Report: report}.Follow(ctx, first, hangups)
	}
	go func() {
		for {
			select {
			case <-hangups:
				o.Logger.Warn("nothing to reload: the configuration is in the environment, which cannot change: use --config, or restart",
					"variable", cli.EnvConfig)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}
