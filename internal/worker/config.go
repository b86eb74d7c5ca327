package worker

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
)

// Config is what the worker has to do.
type Config struct {
	Pipelines []*deadletter.Pipeline
}

// ParseConfig reads the configuration: a JSON object with the list "pipelines", whose elements are
// the provider's attribute `worker`. Keys that are null count as not set, so that Terraform's
// jsonencode may write them; any other unknown key is an error. Errors begin with the path of what
// is wrong, such as pipelines[0].delays[1].
func ParseConfig(data []byte) (Config, error) {
	var elements []value
	root := value{raw: data}
	if err := root.object(fields{"pipelines": func(v value) (err error) {
		elements, err = v.list()
		return err
	}}); err != nil {
		return Config{}, err
	}
	if len(elements) == 0 {
		return Config{}, fmt.Errorf(`pipelines: is missing: the configuration is {"pipelines":[...]} with at least one`)
	}

	var config Config
	seen := map[string]string{}
	for _, element := range elements {
		pipeline, err := parsePipeline(element)
		if err != nil {
			return Config{}, err
		}
		key := fmt.Sprintf("%q in vhost %q", pipeline.Names, pipeline.Vhost)
		if first, found := seen[key]; found {
			return Config{}, fmt.Errorf("%s: pipeline %s is already %s: two workers of one inbox would only share it, remove one", element.path, key, first)
		}
		seen[key] = element.path
		config.Pipelines = append(config.Pipelines, pipeline)
	}
	return config, nil
}

func parsePipeline(element value) (*deadletter.Pipeline, error) {
	var w pipeline.Worker
	err := element.object(fields{
		"version":      decode(&w.Version, "a whole number"),
		"name":         decode(&w.Name, "a string"),
		"vhost":        decode(&w.Vhost, "a string"),
		"delays":       decodeStrings(&w.Delays),
		"max_attempts": decode(&w.MaxAttempts, "a whole number"),
		"max_age":      decodeMaxAge(&w.MaxAge),
		"retry_on":     decodeStrings(&w.RetryOn),
		"work_queues":  decodeWorkQueues(&w.WorkQueues),
	})
	if err != nil {
		return nil, err
	}
	pipeline, err := deadletter.NewPipeline(w)
	if err != nil {
		return nil, fmt.Errorf("%s.%w", element.path, err)
	}
	return pipeline, nil
}

// decodeMaxAge and decodeAttempts refuse what would read as not set.
func decodeMaxAge(target *string) func(value) error {
	return func(v value) error {
		if err := decode(target, "a string")(v); err != nil {
			return err
		}
		if *target == "" {
			return fmt.Errorf("%s: is empty: write a duration such as \"24h\", or leave it out", v.path)
		}
		return nil
	}
}

func decodeAttempts(target *int) func(value) error {
	return func(v value) error {
		if err := decode(target, "a whole number")(v); err != nil {
			return err
		}
		if *target < 1 {
			return fmt.Errorf("%s: %d is too few: the first delivery counts, so it must be at least 1", v.path, *target)
		}
		return nil
	}
}

func decodeStrings(target *[]string) func(value) error {
	return func(v value) error {
		elements, err := v.list()
		if err != nil {
			return err
		}
		*target = make([]string, len(elements))
		for i, element := range elements {
			if err := decode(&(*target)[i], "a string")(element); err != nil {
				return err
			}
		}
		return nil
	}
}

func decodeWorkQueues(target *map[string]pipeline.WorkerQueue) func(value) error {
	return func(v value) error {
		members, err := v.members()
		if err != nil {
			return err
		}
		*target = make(map[string]pipeline.WorkerQueue, len(members))
		for _, queue := range slices.Sorted(maps.Keys(members)) { // so that the error is always the same
			member := value{path: fmt.Sprintf("%s[%q]", v.path, queue), raw: members[queue]}
			var settings pipeline.WorkerQueue
			if err := member.object(fields{"max_attempts": decodeAttempts(&settings.MaxAttempts)}); err != nil {
				return err
			}
			(*target)[queue] = settings
		}
		return nil
	}
}

var plainKey = regexp.MustCompile(`^[A-Za-z_]\w*$`)

// join appends a key to a path. A file may hold any key, the empty one and a whole sentence included.
func join(path, key string) string {
	if !plainKey.MatchString(key) {
		return fmt.Sprintf("%s[%q]", path, key)
	}
	return strings.TrimPrefix(path+"."+key, ".")
}
