package worker

import _ "embed"

// ConfigSchema is the JSON Schema of what [ParseConfig] reads.
//
//go:embed config.schema.json
var ConfigSchema []byte
