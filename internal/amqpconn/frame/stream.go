package frame

import (
	endian "encoding/binary"
	"slices"
)

const (
	// greetingSize is the size, in bytes, of the protocol header that a client sends before all frames.
	greetingSize = 8

	// Parts of a frame, in bytes.
	headSize = 7 // type, channel, payload size
	endSize  = 1
	// contentSize is the size of a frame with a content header before the properties: head, class, weight and body size.
	contentSize = headSize + 2 + 2 + 8

	// contentHeader is the type of a frame with a content header.
	contentHeader = 2
)

// stream is one direction of a connection. It changes the properties in content headers.
type stream struct {
	// through is how many bytes of the current frame pass unchanged.
	through int64
	// held is the beginning of a frame that is not complete.
	held []byte
	// edit returns new properties for a message with a body of this size, or nil to keep the old ones.
	edit func(properties []byte, body int) []byte
}

// next takes bytes of the stream. It returns those that pass, which may be none, and those that are not taken.
func (s *stream) next(data []byte) (passes, rest []byte) {
	if n := s.unchanged(data); n > 0 {
		return data[:n], data[n:]
	}
	frame, rest := s.part(data)
	if !isContentHeader(frame) {
		return frame, rest
	}
	content, properties, end := frame[:contentSize], frame[contentSize:len(frame)-endSize], frame[len(frame)-endSize:]
	body := int(endian.BigEndian.Uint64(content[contentSize-8:])) //nolint:gosec // a broker has limits
	if edited := s.edit(properties, body); edited != nil {
		frame = slices.Concat(content, edited, end)
		endian.BigEndian.PutUint32(frame[3:], uint32(len(frame)-headSize-endSize)) //nolint:gosec // is within a frame
	}
	return frame, rest
}

// unchanged takes all bytes before the next content header, and returns their number. It leaves an incomplete head.
func (s *stream) unchanged(data []byte) (n int) {
	for {
		through := min(int64(len(data)-n), s.through)
		s.through -= through
		n += int(through)
		if len(s.held) > 0 || len(data)-n < headSize || isContentHeader(data[n:]) {
			return n
		}
		s.through = wholeSize(data[n:])
	}
}

// part takes the head of a frame, or a whole frame with a content header. It returns nil, and holds what it takes, if
// that is not complete.
func (s *stream) part(data []byte) (part, rest []byte) {
	if n := partSize(data); len(s.held) == 0 && n <= int64(len(data)) {
		return data[:n], data[n:]
	}
	n := min(int64(len(data)), partSize(s.held)-int64(len(s.held)))
	s.held, rest = append(s.held, data[:n]...), data[n:]
	if int64(len(s.held)) < partSize(s.held) {
		return nil, rest
	}
	part, s.held = s.held, nil
	if !isContentHeader(part) {
		s.through = wholeSize(part) - headSize
	}
	return part, rest
}

// partSize is the size of a head, or of a whole frame with a content header.
func partSize(frame []byte) int64 {
	if isContentHeader(frame) {
		return wholeSize(frame)
	}
	return headSize
}

// wholeSize reads the size of a frame, in bytes, from its head.
func wholeSize(head []byte) int64 {
	return headSize + int64(endian.BigEndian.Uint32(head[3:])) + endSize
}

// isContentHeader reports whether the head starts a content header. Brokers send none that are shorter.
func isContentHeader(head []byte) bool {
	return len(head) >= headSize && head[0] == contentHeader && wholeSize(head) >= contentSize+endSize
}
