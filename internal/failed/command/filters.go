package command

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/cli"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/deadletter"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/delaying"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/failed/operation"
)

type filters struct {
	// plain has the flags whose values need no parsing.
	plain               failed.Filter
	headers, notHeaders []string
	// since and until bound the time, as the flags of bounds say.
	since, until, olderThan, ids string
	bounds                       bounds
	operation.Options
}

// bounds are the flags of a time, and the direction of a duration from now.
type bounds struct{ since, until, direction string }

const scanUsage = "`number` of messages to look at (default: all; 100 of a queue that is neither a pipeline's nor a delayed exchange's)"

func (f *filters) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.plain.Reasons, "reason", nil, "only messages that failed for one of these `reasons`")
	flags.StringArrayVar(&f.plain.FromQueues, "from-queue", nil, "only messages that failed in this `queue`; can be repeated")
	f.bounds = bounds{"since", "until", "ago"}
	flags.StringVar(&f.since, "since", "", "only messages that failed since this `time`: RFC 3339, or a duration ago such as 2h")
	flags.StringVar(&f.until, "until", "", "only messages that failed until this `time`: RFC 3339, or a duration ago")
	flags.StringVar(&f.olderThan, "older-than", "", "only messages that failed longer ago than this `duration`, such as 48h")
	f.addMessageFlags(cmd)
	flags.StringArrayVar(&f.plain.Errors, "error", nil, "only messages with this `text` in their error or exception; can be repeated")
	flags.StringSliceVar(&f.plain.Groups, "group", nil, "only messages of these `groups`, as list -o json or -o html names them")
	flags.StringSliceVar(&f.plain.Not.Reasons, "not-reason", nil, "leave out messages that failed for one of these `reasons`")
	flags.StringArrayVar(&f.plain.Not.FromQueues, "not-from-queue", nil, "leave out messages that failed in this `queue`; can be repeated")
	flags.StringArrayVar(&f.notHeaders, "not-header", nil, "leave out messages with this header, `name=value`; can be repeated")
	flags.StringArrayVar(&f.plain.Not.Errors, "not-error", nil, "leave out messages with this `text` in error or exception; can be repeated")
	flags.StringSliceVar(&f.plain.Not.Groups, "not-group", nil, "leave out messages of these `groups`")
	flags.StringSliceVar(&f.plain.Runs, "run", nil, "only messages that one of these `runs` of import has put into the queue")
	flags.IntVar(&f.Scan, "scan", 0, scanUsage)
	flags.IntVar(&f.Limit, "limit", 0, "greatest `number` of messages to act on (default: all)")
	cmd.MarkFlagsMutuallyExclusive("until", "older-than")
	complete(cmd, "reason", reasons()...)
	complete(cmd, "not-reason", reasons()...)
}

// addDueFlags adds the filters of messages that wait.
func (f *filters) addDueFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	f.bounds = bounds{"due-after", "due-before", "from now"}
	flags.StringVar(&f.since, "due-after", "", "only messages due after this `time`: RFC 3339, or a duration from now such as 2h")
	flags.StringVar(&f.until, "due-before", "", "only messages due before this `time`: RFC 3339, or a duration from now")
	f.addMessageFlags(cmd)
}

// addMessageFlags adds the filters by what a publisher has set.
func (f *filters) addMessageFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringArrayVar(&f.headers, "header", nil, "only messages with this header, `name=value`; can be repeated")
	flags.StringVar(&f.plain.RoutingKey, "routing-key", "", "only messages whose routing key matches this `pattern`; * stands for any text")
	flags.StringVar(&f.ids, "ids", "",
		"only messages whose ids or message-ids are in this `file`, one per line, or as lines of an export; - is stdin")
	flags.StringArrayVar(&f.plain.MessageIDs, "message-id", nil, "only messages with this message-`id`; can be repeated")
}

// reasons are the reasons for which pipelines and delayed exchanges park messages.
func reasons() []string {
	return append(deadletter.FailReasons(), delaying.ReasonTooLong, delaying.ReasonUnroutable, failed.ReasonNoInbox)
}

func (f *filters) parse(stdin io.Reader, now time.Time) (filter failed.Filter, err error) {
	filter = f.plain
	if filter.Since, err = f.bounds.moment(f.bounds.since, f.since, now); err != nil {
		return filter, err
	}
	if filter.Until, err = f.bounds.moment(f.bounds.until, f.until, now); err != nil {
		return filter, err
	}
	if f.olderThan != "" {
		age, err := time.ParseDuration(f.olderThan)
		if err != nil || age < 0 {
			return filter, fmt.Errorf("--older-than %q: must be a duration, such as 48h", f.olderThan)
		}
		filter.Until = now.Add(-age)
	}
	if !filter.Since.IsZero() && !filter.Until.IsZero() && filter.Since.After(filter.Until) {
		return filter, fmt.Errorf("--%s %s: must be earlier than the end, %s", f.bounds.since, f.since, cmp.Or(f.until, f.olderThan))
	}
	var wrong error
	filter.Headers, err = headerValues("--header", f.headers)
	filter.Not.Headers, wrong = headerValues("--not-header", f.notHeaders)
	if err := cmp.Or(err, wrong, f.notListed()); err != nil {
		return filter, err
	}
	for _, id := range slices.Concat(filter.Groups, filter.Not.Groups) {
		if !failed.IsGroup(id) {
			return filter, fmt.Errorf("%q is not the id of a group: list -o json and -o html show the ids for --group and --not-group", id)
		}
	}
	if f.Scan < 0 || f.Limit < 0 {
		return filter, fmt.Errorf("--scan and --limit: must not be negative")
	}
	if f.ids != "" {
		filter.IDs, err = readIDs(f.ids, stdin)
	}
	return filter, err
}

// notListed refuses a list in place of one value, which would leave nothing out.
func (f *filters) notListed() error {
	for _, value := range slices.Concat(f.plain.Not.FromQueues, f.notHeaders) {
		if strings.Contains(value, ",") {
			return fmt.Errorf("%q has a comma: write --not-from-queue or --not-header again for each value", value)
		}
	}
	return nil
}

func headerValues(flag string, texts []string) (headers []failed.Header, err error) {
	for _, header := range texts {
		key, value, ok := strings.Cut(header, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("%s %q: must be name=value", flag, header)
		}
		headers = append(headers, failed.Header{Key: key, Value: value})
	}
	return headers, nil
}

// moment reads a time, or a duration in this direction.
func (b bounds) moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		if _, err := at.MarshalText(); err != nil { // Parse takes it, and the record of a run could not be written
			return at, fmt.Errorf("--%s %q: its zone must be less than 24 hours from UTC", flag, text)
		}
		return at, nil
	}
	distance, err := time.ParseDuration(text)
	if days, is := strings.CutSuffix(text, "d"); is {
		distance, err = time.ParseDuration(days + "h")
		distance *= 24
	}
	if err != nil || distance < 0 {
		return time.Time{}, fmt.Errorf("--%s %q: must be a time, such as 2026-11-22T01:00:00Z, or a duration %s, such as 2h or 3d",
			flag, text, b.direction)
	}
	if b.direction == "ago" {
		distance = -distance
	}
	return now.Add(distance), nil
}

// readIDs reads ids, message-ids or lines of an export.
func readIDs(name string, stdin io.Reader) ([]string, error) {
	from := stdin
	if name != "-" {
		if err := cli.MustBeFile("--ids", name); err != nil {
			return nil, err
		}
		file, err := os.Open(name) //nolint:gosec // the user says which
		if err != nil {
			return nil, fmt.Errorf("--ids: %w", err)
		}
		defer func() { _ = file.Close() }()
		if info, err := file.Stat(); err == nil && info.Mode()&os.ModeDevice != 0 {
			return nil, fmt.Errorf("--ids: %s is a device, which can have no end; write - to read stdin", name)
		}
		from = file
	}
	ids := []string{}
	for lines, n := bufio.NewReader(from), 1; ; n++ {
		line, err := lines.ReadString('\n')
		if text := strings.TrimSpace(line); text != "" {
			id, err := readID(text)
			if err != nil {
				return nil, fmt.Errorf("--ids, line %d: %w", n, err)
			}
			ids = append(ids, id)
		}
		if err == io.EOF {
			return ids, nil
		}
		if err != nil {
			return nil, fmt.Errorf("--ids: %w", err)
		}
	}
}

func readID(text string) (string, error) {
	if !strings.HasPrefix(text, "{") {
		return text, nil
	}
	var line struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		return "", fmt.Errorf("neither an id nor a line of an export: %w", err)
	}
	if !failed.IsID(line.ID) {
		return "", fmt.Errorf("%q is not an id, which has 16 digits of 0 to 9 and a to f", line.ID)
	}
	return line.ID, nil
}
