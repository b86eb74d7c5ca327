// Package file is the format in which failed messages are kept outside of a broker: JSON, one message per line.
//
// Each line can be read and edited with the tools for JSON. What JSON has no type for is in "types"; what it
// cannot express at all is in "raw", which is believed for as long as the rest of the line says the same. So a
// line that nobody has edited is the message, byte for byte, and an edited one is what the editor wrote.
package file
