package parameter

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/provider/attribute"
)

// Each attribute has a key in the table, shows a change by hand, and can be read back from the table alone.
func TestAttributesOfBlocks(t *testing.T) {
	t.Parallel()
	for b, of := range map[*block]func(context.Context) schema.Schema{&shovelBlock: shovelSchema, &upstreamBlock: upstreamSchema} {
		kind, _ := of(t.Context()).Blocks[b.name].Type().(types.ListType)
		empty := b.with(t.Context(), types.ListValueMust(kind.ElemType, nil), func(_ string, null attr.Value) attr.Value { return null })
		for name, null := range attributes(empty) {
			if name == urisVersion {
				continue
			}
			one, another := samples(null)
			configured := b.set(empty, name, one)
			table := b.value(configured)
			require.Len(t, table, 1, name)
			require.True(t, b.equal(table, b.value(configured)), name)
			require.False(t, b.equal(table, b.value(b.set(empty, name, another))), name)
			if !strings.Contains(name, "uri") { // which an import leaves out
				require.Equal(t, one, attributes(b.shown(empty, table))[name], name)
			}
		}
		// A table without a key has the broker's default.
		require.True(t, b.equal(b.value(b.shown(empty, map[string]any{})), map[string]any{}))
	}
}

// An update keeps what the broker has for no attribute, and the type of arguments.
func TestUpdateKeepsWhatHasNoAttribute(t *testing.T) {
	t.Parallel()
	kind, _ := shovelSchema(t.Context()).Blocks[shovelBlock.name].Type().(types.ListType)
	of := shovelBlock.with(t.Context(), types.ListValueMust(kind.ElemType, nil), func(_ string, null attr.Value) attr.Value { return null })
	wanted := map[string]any{"src-consumer-args": map[string]any{"x-priority": "5", "other": "6"}}
	live := map[string]any{
		"src-predeclared": true, "src-uri": []any{"amqp://a"}, "src-prefetch-count": int64(7), "src-consumer-args": map[string]any{"x-priority": int64(5)},
	}
	shovelBlock.keep(of, wanted, live)
	require.Equal(t, map[string]any{
		"src-predeclared": true, "src-uri": []any{"amqp://a"}, "src-consumer-args": map[string]any{"x-priority": int64(5), "other": "6"},
	}, wanted)
	require.Equal(t, map[string]any{"x-priority": int64(5)}, typed("source_consumer_arguments", map[string]any{"x-priority": "5"}))
}

func (b block) set(of types.List, set string, value attr.Value) types.List {
	return b.with(attribute.Background, of, func(name string, was attr.Value) attr.Value {
		if name == set {
			return value
		}
		return was
	})
}

// samples are two values of the type of a null value. Neither is a default.
func samples(null attr.Value) (one, another attr.Value) {
	texts := func(text string) []attr.Value { return []attr.Value{types.StringValue(text)} }
	switch null.(type) {
	case types.Bool:
		return types.BoolValue(true), types.BoolValue(false)
	case types.Int64:
		return types.Int64Value(77), types.Int64Value(78)
	case types.List:
		return types.ListValueMust(types.StringType, texts("amqp://a")), types.ListValueMust(types.StringType, texts("amqp://b"))
	case types.Map:
		return types.MapValueMust(types.StringType, map[string]attr.Value{"priority": types.StringValue("3")}),
			types.MapValueMust(types.StringType, map[string]attr.Value{"priority": types.StringValue("4")})
	}
	return types.StringValue("17"), types.StringValue("18")
}
