package workerconfig

import _ "embed"

// Schema is the JSON Schema of what [Parse] reads.
//
//go:embed config.schema.json
var Schema []byte
