//go:build bench

package benchworker

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/amqpconn"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/worker"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/workerconfig"
)

// profiled is a worker that profiles itself.
type profiled struct {
	URI    string
	Window int
	Config []byte
	Dir    string
}

func (p *profiled) run() error {
	config, err := workerconfig.Parse(p.Config)
	if err != nil {
		return err
	}
	uri, err := amqpconn.ParseURI(p.URI)
	if err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	cpu, err := os.Create(filepath.Join(p.Dir, "cpu.pprof"))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(cpu); err != nil {
		return err
	}
	err = worker.Run(ctx, worker.Options{
		Config: config, Prefetch: p.Window, Logger: slog.New(slog.DiscardHandler),
		Brokers: func() ([]amqpconn.URI, error) { return []amqpconn.URI{uri}, nil },
	})
	pprof.StopCPUProfile()
	return errors.Join(err, cpu.Close(), p.writeAllocations())
}

func (p *profiled) writeAllocations() error {
	file, err := os.Create(filepath.Join(p.Dir, "allocs.pprof"))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
