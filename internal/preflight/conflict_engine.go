package preflight

import (
	"fmt"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// checkRelease finds an engine that the broker is too old for.
func checkRelease(f *Findings, engine string, vhost topology.Vhost) {
	v := vhost.Version
	release := fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
	switch {
	case engine == pipeline.EngineNative && v.BeforePatch(4, 3, 1):
		f.refuse(Path{"engine"}, "RabbitMQ is too old for this engine", tooOldForNative, release)
	case engine == pipeline.EngineConsumer && v.Before(4, 0):
		f.refuse(Path{"engine"}, "RabbitMQ is too old for this engine", tooOldForConsumer, release)
	}
}
