package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/reload"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
)

// follow returns the configurations that come after the first one.
func (s source) follow(ctx context.Context, first []byte, hangups <-chan os.Signal, log *slog.Logger) <-chan worker.Config {
	if s.configFile != "" {
		return reload.File{Path: s.configFile, Logger: log}.Follow(ctx, first, hangups)
	}
	go func() {
		for {
			select {
			case <-hangups:
				log.Warn("nothing to reload: the configuration is in the environment, which cannot change: use --config, or restart", "variable", envConfig)
			case <-ctx.Done():
				return
			}
		}
	}()
	return nil
}
