package binding

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/problem"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/entity"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/plain"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

func checkType(imported string) []problem.Problem {
	if imported == "queue" || imported == toExchange {
		return nil
	}
	return []problem.Problem{problem.New(problem.Path{"destination_type"}, "Not a type of destination",
		"A binding leads to a \"queue\" or an \"exchange\", not to %q.", imported)}
}

// FindImport finds the properties key of the binding that an import id means. It implements [entity.ImportFinder].
func (b bindings) FindImport(ctx context.Context, id []string) (string, diag.Diagnostics) {
	end := id[4]
	if !b.Run.Configured() {
		return unescaped(end), nil
	}
	all, err := b.Run.Listed(ctx, id[0])
	if err != nil {
		return unescaped(end), nil // Terraform reads the binding next, and says so
	}
	ends := topology.Binding{Source: id[1], ToExchange: id[2] == toExchange, Destination: id[3]}
	between := slices.DeleteFunc(slices.Clone(all.Bindings), func(live topology.Binding) bool {
		return live.Source != ends.Source || live.ToExchange != ends.ToExchange || live.Destination != ends.Destination
	})
	switch found := meant(end, between); len(found) {
	case 1:
		return found[0].PropertiesKey, nil
	case 0:
		return "", diag.Diagnostics{noneMeant(id[0], end, ends, between)}
	default:
		return "", diag.Diagnostics{manyMeant(id, found, between)}
	}
}

// meant are the bindings that the end of an import id means. A fully encoded properties key always means its binding. A percent-encoded
// one, as in the attribute id, does so unless another binding has that routing key. All else is compared with all keys, encoded or not.
func meant(end string, between []topology.Binding) []topology.Binding {
	decoded := unescaped(end)
	isKey := slices.ContainsFunc(between, func(b topology.Binding) bool { return b.RoutingKey == end })
	var found []topology.Binding
	for _, b := range between {
		exact := b.PropertiesKey == decoded
		switch {
		case exact && (!isKey || b.RoutingKey == end || end == fullyEncoded(b)):
			return []topology.Binding{b}
		case exact, b.PropertiesKey == end, b.RoutingKey == end, b.RoutingKey == decoded:
			found = append(found, b)
		}
	}
	return found
}

// onlyEnd is the end of an import id that means only this binding.
func onlyEnd(b topology.Binding, between []topology.Binding) string {
	if end := url.PathEscape(b.PropertiesKey); len(meant(end, between)) == 1 {
		return end
	}
	return fullyEncoded(b)
}

// fullyEncoded is a properties key of which each byte is percent-encoded, in lower case. Hardly a routing key looks like that.
func fullyEncoded(b topology.Binding) string {
	return strings.ReplaceAll(fmt.Sprintf(" % x", b.PropertiesKey), " ", "%")
}

// unescaped is a text without percent-encoding. A text that is not encoded stays as it is.
func unescaped(text string) string {
	if decoded, err := url.PathUnescape(text); err == nil {
		return decoded
	}
	return text
}

func noneMeant(vhost, end string, ends topology.Binding, between []topology.Binding) diag.Diagnostic {
	what := fmt.Sprintf("from exchange %q to %s %q in vhost %q", ends.Source, parts(ends)[1], ends.Destination, vhost)
	if len(between) == 0 {
		return diag.NewErrorDiagnostic(noBinding, "No binding leads "+what+". Correct the names in the id.")
	}
	keys := make([]string, len(between))
	for i, b := range between {
		keys[i] = fmt.Sprintf("%q", b.RoutingKey)
	}
	return diag.NewErrorDiagnostic(noBinding, fmt.Sprintf("No binding %s has the routing key or the properties key %q. "+
		"End the id with one of these routing keys:\n%s", what, end, plain.First(slices.Compact(slices.Sorted(slices.Values(keys))))))
}

const noBinding = "Binding does not exist"

func manyMeant(id []string, found, between []topology.Binding) diag.Diagnostic {
	ids := make([]string, len(found))
	for i, b := range found {
		ids[i] = fmt.Sprintf("'%s/%s' is %s", entity.FormatID(id[:4]...), onlyEnd(b, between), b)
	}
	return diag.NewErrorDiagnostic("More than one binding", fmt.Sprintf(
		"The end of the id, %q, means %d bindings. Import one of these ids:\n%s", id[4], len(ids), plain.First(ids)))
}

var _ entity.ImportFinder = bindings{}
