package attribute

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-jsontypes/jsontypes"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/topology"
)

// ParseObject reads a JSON object and keeps integers whole. It is nil where there is none.
func ParseObject(text jsontypes.Normalized, at path.Path) (topology.Arguments, diag.Diagnostics) {
	var diags diag.Diagnostics
	if !Known(text) {
		return nil, diags
	}
	decoder := json.NewDecoder(strings.NewReader(text.ValueString()))
	decoder.UseNumber()
	var decoded map[string]any
	if err := decoder.Decode(&decoded); err != nil || decoded == nil {
		diags.AddAttributeError(Shown(at), "Not a JSON object",
			fmt.Sprintf("%s must be a JSON object, such as jsonencode({ \"key\" = \"value\" }).", at))
		return nil, diags
	}
	return topology.DecodedArguments(decoded), diags
}

// ArgumentsValue is the reverse: arguments came out of JSON, so they go back into it.
func ArgumentsValue(arguments topology.Arguments) jsontypes.Normalized {
	if arguments == nil {
		return jsontypes.NewNormalizedNull()
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return jsontypes.NewNormalizedNull()
	}
	return jsontypes.NewNormalizedValue(string(text))
}
