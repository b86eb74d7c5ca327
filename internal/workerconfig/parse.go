// Package workerconfig reads and checks the sidecar's configuration, and has its JSON Schema.
//
// One element describes a pipeline or a delayed exchange to the sidecar. It is a [pipeline.Worker] or a
// [delayed.Worker], and also the attribute `worker` of the provider's resource. A Terraform plan makes the same checks.
package workerconfig

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delayed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/pipeline"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/release"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/rules"
)

// Config is the sidecar's work.
type Config struct {
	// Pipelines and DelayedExchanges are valid. In each list, name and vhost together are unique.
	Pipelines        []pipeline.Worker
	DelayedExchanges []delayed.Worker
	// Refused are the elements that this release cannot run. The other ones are not affected.
	Refused []Refused
}

// Refused is an element that the worker cannot run.
type Refused struct {
	// ID has no name or vhost if the element has none.
	ID ID
	// Err begins with the path of the mistake, such as pipelines[0].delays[1].
	Err error
}

// Identified reports whether the element has a name and a vhost.
func (r Refused) Identified() bool { return r.ID.Name != "" && r.ID.Vhost != "" }

// Err joins the errors of all refused elements.
func (c Config) Err() error {
	var all []error
	for _, r := range c.Refused {
		all = append(all, r.Err)
	}
	return errors.Join(all...)
}

// Parse reads the configuration: a JSON object with the lists "pipelines" and "delayed_exchanges". Their elements are
// the attribute `worker` of the provider's resources. Keys that are null count as not set, since Terraform's jsonencode
// can write them. Any other unknown key is a mistake, unless the element has a min_reader that this release reads. A
// mistake refuses its element. Both elements with one name are refused. Invalid JSON, an unknown version and a mistake
// outside the elements are errors, which begin with the path of the mistake.
func Parse(data []byte) (Config, error) {
	var config Config
	if text := bytes.TrimSpace(data); bytes.HasPrefix(text, []byte(`"`)) || bytes.HasPrefix(text, []byte("<<")) {
		return config, errors.New("the configuration is a quoted string, as terraform output NAME prints it: write terraform output -raw NAME")
	}
	root := value{raw: data}
	if err := root.object(fields{
		"pipelines":         elements(&config, rules.Pipeline, pipeline.WorkerVersion, &config.Pipelines, parsePipeline),
		"delayed_exchanges": elements(&config, rules.DelayedExchange, delayed.WorkerVersion, &config.DelayedExchanges, parseDelayedExchange),
	}); err != nil {
		return Config{}, err
	}
	if len(config.Pipelines)+len(config.DelayedExchanges)+len(config.Refused) == 0 {
		return Config{}, errors.New(
			`pipelines: is missing; write {"pipelines":[...],"delayed_exchanges":[...]} with at least one element in all`)
	}
	return config, nil
}

// elements reads a list. It refuses elements with mistakes, and fails if it has an unknown version.
func elements[W any](config *Config, kind rules.FlowKind, version int, target *[]W, parse func(value) (W, error)) func(value) error {
	return func(v value) error {
		list, err := v.list()
		if err != nil {
			return err
		}
		places := map[ID][]problem.Path{}
		for _, element := range list {
			members, _ := element.members()
			var found int
			if err := json.Unmarshal(members["version"], &found); err == nil && found != 0 {
				if err := element.refuse(checkVersion(found, version)); err != nil {
					return err // the shape of an element of another version is not known
				}
			}
			id := element.id(kind)
			places[id] = append(places[id], element.path)
		}
		for _, element := range list {
			id := element.id(kind)
			w, err := parse(element)
			isOther := func(place problem.Path) bool { return !slices.Equal(place, element.path) }
			if i := slices.IndexFunc(places[id], isOther); err == nil && i >= 0 {
				err = fmt.Errorf("%s: %s is also %s; remove one, since two workers would only share one inbox",
					element.path, id, places[id][i])
			}
			if err != nil {
				config.Refused = append(config.Refused, Refused{id, err})
				continue
			}
			*target = append(*target, w)
		}
		return nil
	}
}

// id identifies an element as far as it has a name and a vhost.
func (v value) id(kind rules.FlowKind) ID {
	members, _ := v.members()
	id := ID{Kind: kind}
	_ = json.Unmarshal(members["name"], &id.Name)
	_ = json.Unmarshal(members["vhost"], &id.Vhost)
	return id
}

func parsePipeline(element value) (w pipeline.Worker, err error) {
	err = element.element(fields{
		"version":      decode(&w.Version, "a whole number"),
		"name":         decode(&w.Name, "a string"),
		"vhost":        decode(&w.Vhost, "a string"),
		"delays":       decodeStrings(&w.Delays),
		"max_attempts": decodeAttempts(&w.MaxAttempts),
		"max_age":      decodeChecked(&w.MaxAge, "a string", func() []problem.Problem { return rules.CheckMaxAge(nil, w.MaxAge) }),
		"retry_on":     decodeStrings(&w.RetryOn),
		"work_queues":  decodeWorkQueues(&w.WorkQueues),
	})
	if err != nil {
		return w, err
	}
	if w.MaxAttempts == 0 {
		w.MaxAttempts = len(w.Delays) + 1
	}
	return w, element.refuse(Validate(w))
}

func parseDelayedExchange(element value) (w delayed.Worker, err error) {
	err = element.element(fields{
		"version":   decode(&w.Version, "a whole number"),
		"name":      decode(&w.Name, "a string"),
		"vhost":     decode(&w.Vhost, "a string"),
		"max_delay": decode(&w.MaxDelay, "a string"),
		"precision": decode(&w.Precision, "a string"),
	})
	if err != nil {
		return w, err
	}
	return w, element.refuse(slices.Concat(
		checkVersion(w.Version, delayed.WorkerVersion),
		checkVhost(w.Vhost),
		rules.CheckDelayedExchange(w.Name, w.MaxDelay, w.Precision),
	))
}

// refuse returns an error about the first of the problems within the value.
func (v value) refuse(problems []problem.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	first := problems[0]
	first.Path = slices.Concat(v.path, first.Path)
	return errors.New(first.String())
}

func decodeAttempts(target *int) func(value) error {
	return decodeChecked(target, "a whole number", func() []problem.Problem { return rules.CheckAttempts(nil, int64(*target)) })
}

// decodeChecked refuses values that would otherwise count as not set.
func decodeChecked(target any, kind string, check func() []problem.Problem) func(value) error {
	return func(v value) error {
		if err := decode(target, kind)(v); err != nil {
			return err
		}
		return v.refuse(check())
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
			var settings pipeline.WorkerQueue
			member := v.at(problem.MapKey(queue), members[queue])
			if err := member.object(fields{
				"max_attempts": decodeAttempts(&settings.MaxAttempts),
				"failed_queue": decodeFailedQueue(&settings.FailedQueue),
			}); err != nil {
				return err
			}
			(*target)[queue] = settings
		}
		return nil
	}
}

// decodeFailedQueue refuses a plain name, and an object without a name, which would otherwise count as not set.
func decodeFailedQueue(target *pipeline.WorkerFailedQueue) func(value) error {
	return func(v value) error {
		if json.Unmarshal(v.raw, new(string)) == nil {
			return fmt.Errorf(`%s: must be an object; write {"name": %s}`, v.path, v.raw)
		}
		target.Declare = true
		err := v.object(fields{"name": decode(&target.Name, "a string"), "declare": decode(&target.Declare, "true or false")})
		switch {
		case err != nil:
			return err
		case target.Name == "":
			return fmt.Errorf("%s: is missing; write the queue's name", v.at("name", nil).path)
		}
		return v.refuse(rules.CheckAnyQueueName(problem.Path{"name"}, target.Name))
	}
}

// value is a part of a JSON document together with its path.
type value struct {
	path problem.Path
	raw  json.RawMessage
	// extensible values can have unknown keys.
	extensible bool
}

func (v value) at(step any, raw json.RawMessage) value {
	return value{path: append(slices.Clone(v.path), step), raw: raw, extensible: v.extensible}
}

// fields are the keys that an object can have.
type fields map[string]func(value) error

// element is [value.object] for an element. With a min_reader that this release reads, it can have unknown keys.
func (v value) element(known fields) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	if minReader := v.at("min_reader", members["min_reader"]); minReader.raw != nil && !minReader.isNull() {
		var needs string
		if err := decode(&needs, "a string")(minReader); err != nil {
			return err
		}
		if err := release.Check(needs); err != nil {
			return fmt.Errorf("%s: %w", v.path, err)
		}
		v.extensible = true
	}
	return v.object(known)
}

// object hands each member to its field. It refuses unknown keys, unless they are null or the value is extensible.
func (v value) object(known fields) error {
	members, err := v.members()
	if err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		member := v.at(key, members[key])
		if member.isNull() {
			continue
		}
		field, ok := known[key]
		switch {
		case !ok && v.extensible:
			continue
		case !ok:
			return fmt.Errorf("%s: unknown key; the supported keys are %s", member.path, strings.Join(slices.Sorted(maps.Keys(known)), ", "))
		}
		if err := field(member); err != nil {
			return err
		}
	}
	return nil
}

func (v value) members() (map[string]json.RawMessage, error) {
	var members map[string]json.RawMessage
	if err := decode(&members, "an object")(v); err != nil {
		return nil, err
	}
	if key, found := v.repeatedKey(); found {
		return nil, fmt.Errorf("%s: duplicate key; remove one of them", v.at(key, nil).path)
	}
	return members, nil
}

// repeatedKey finds a key that an object has more than once. The decoder would silently take the last one.
func (v value) repeatedKey() (key string, found bool) {
	decoder := json.NewDecoder(bytes.NewReader(v.raw))
	_, err := decoder.Token() // the brace
	seen := map[json.Token]bool{}
	for err == nil && decoder.More() {
		token, _ := decoder.Token()
		if seen[token] {
			return fmt.Sprint(token), true
		}
		seen[token] = true
		var member json.RawMessage
		err = decoder.Decode(&member)
	}
	return "", false
}

func (v value) list() ([]value, error) {
	var elements []json.RawMessage
	if err := decode(&elements, "a list")(v); err != nil {
		return nil, err
	}
	values := make([]value, len(elements))
	for i, raw := range elements {
		values[i] = v.at(i, raw)
	}
	return values, nil
}

func (v value) isNull() bool {
	return bytes.Equal(bytes.TrimSpace(v.raw), []byte("null"))
}

// decode returns a field that reads a value of this kind. Its error names the kind.
func decode(target any, kind string) func(value) error {
	return func(v value) error {
		err := json.Unmarshal(v.raw, target)
		var syntax *json.SyntaxError
		what := "the configuration"
		if len(v.path) > 0 {
			what = v.path.String() + ":"
		}
		switch {
		case errors.As(err, &syntax):
			return fmt.Errorf("the configuration is not JSON: %w at byte %d; terraform output -raw NAME writes an output that is made by jsonencode",
				err, syntax.Offset)
		case err != nil:
			return fmt.Errorf("%s must be %s", what, kind)
		case v.isNull():
			return fmt.Errorf("%s must be %s, not null", what, kind)
		}
		return nil
	}
}

// Schema is the JSON Schema of the configuration that [Parse] reads.
//
//go:embed config.schema.json
var Schema []byte
