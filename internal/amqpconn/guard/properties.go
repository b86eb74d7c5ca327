package guard

// Parts of a content header, in bytes.
const (
	contentSize = 2 + 2 + 8 // class, weight, body size
	flagsSize   = 2
	fixedSize   = contentSize + flagsSize
	lengthSize  = 4
)
