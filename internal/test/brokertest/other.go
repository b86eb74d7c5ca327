package brokertest

import (
	"bytes"
	endian "encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
)

// OtherBroker is the URI of a broker with this name that is not RabbitMQ. It accepts connections, channels and consumers. It
// does not answer the user "nobody", or the question whether a queue or an exchange exists.
func OtherBroker(t testing.TB, name string) string {
	t.Helper()
	return "amqp://guest:guest@" + Listen(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		if _, err := io.ReadFull(conn, make([]byte, len("AMQP0091"))); err == nil {
			serveOther(conn, name)
		}
	})
}

// serveOther answers until the client closes the connection.
func serveOther(conn net.Conn, name string) {
	send := func(channel, method, arguments string) error {
		_, err := conn.Write([]byte("\x01" + channel + longString(method+arguments) + "\xce"))
		return err
	}
	properties := "\x07productS" + longString(name) + "\x07versionS" + longString("1.2.3")
	start := "\x00\x09" + longString(properties) + longString("PLAIN") + longString("en_US")
	for err := send("\x00\x00", "\x00\x0a\x00\x0a", start); err == nil; {
		head := make([]byte, 7)
		if _, err = io.ReadFull(conn, head); err != nil {
			return
		}
		payload := make([]byte, endian.BigEndian.Uint32(head[3:])+1)
		if _, err = io.ReadFull(conn, payload); err != nil {
			return
		}
		if head[0] != 1 {
			continue
		}
		answer, arguments := "", ""
		switch method := string(payload[:4]); method {
		case "\x00\x0a\x00\x0b": // connection.start-ok
			if bytes.Contains(payload, []byte("\x00nobody\x00")) {
				continue
			}
			answer, arguments = "\x00\x0a\x00\x1e", "\x00\x00\x00\x02\x00\x00\x00\x0a"
		case "\x00\x0a\x00\x28": // connection.open
			answer, arguments = next(method), "\x00"
		case "\x00\x14\x00\x0a": // channel.open
			answer, arguments = next(method), "\x00\x00\x00\x00"
		case "\x00\x0a\x00\x32", "\x00\x3c\x00\x0a", "\x00\x55\x00\x0a": // connection.close, basic.qos, confirm.select
			answer = next(method)
		case "\x00\x3c\x00\x14": // basic.consume, with the tag after the queue
			tag := payload[6+1+payload[6]:]
			answer, arguments = next(method), string(tag[:1+tag[0]])
		}
		if answer != "" {
			err = send(string(head[1:3]), answer, arguments)
		}
	}
}

func longString(s string) string {
	return string(endian.BigEndian.AppendUint32(nil, uint32(len(s)))) + s
}

// next is the method that answers a method.
func next(method string) string { return method[:3] + string(method[3]+1) }

// Renamed is the URI of the broker under another name, as AMQP shows it.
func (b *Broker) Renamed(t testing.TB, name string) string {
	t.Helper()
	return Between(t, b.URI, func(client, broker net.Conn) {
		if _, err := io.CopyN(broker, client, int64(len("AMQP0091"))); err != nil {
			return
		}
		head := make([]byte, 7)
		if _, err := io.ReadFull(broker, head); err != nil {
			return
		}
		start := make([]byte, endian.BigEndian.Uint32(head[3:]))
		if _, err := io.ReadFull(broker, start); err != nil {
			return
		}
		const before = 4 + 2 // method and versions
		size := endian.BigEndian.Uint32(start[before:])
		properties, rest := start[before+4:before+4+size], start[before+4+size:]
		properties = bytes.Replace(properties, []byte("\x07productS"+longString("RabbitMQ")), []byte("\x07productS"+longString(name)), 1)
		payload := string(start[:before]) + longString(string(properties)) + string(rest)
		if _, err := client.Write([]byte(string(head[:3]) + longString(payload))); err == nil {
			Join(client, broker)
		}
	})
}

// LavinMQ is the endpoint of a copy of LavinMQ's management API, release 2.4, without its statistics.
func LavinMQ(t testing.TB) string {
	t.Helper()
	answers := map[string]string{
		"/api/whoami": `{"name":"guest","password_hash":"+pHuxkR9fCyrrwXjOD4BP4XbzO3l8LJr8YkThMgJ0yVHFRE+",` +
			`"hashing_algorithm":"rabbit_password_hashing_sha256","tags":"administrator"}`,
		"/api/overview": `{"lavinmq_version":"2.4.0","node":"lavin","uptime":12,` +
			`"object_totals":{"channels":0,"connections":0,"consumers":0,"exchanges":7,"queues":0},` +
			`"queue_totals":{"messages":0,"messages_ready":0,"messages_unacknowledged":0,"messages_log":[],"messages_ready_log":[],` +
			`"messages_unacknowledged_log":[]},"recv_oct_details":{"rate":0.0,"log":[]},"send_oct_details":{"rate":0.0,"log":[]},` +
			`"message_stats":{"ack":0,"ack_details":{"rate":0.0,"log":[]}},"churn_rates":{"connection_created":0,` +
			`"connection_created_details":{"rate":0.0}},"listeners":[{"ip_address":"127.0.0.1","protocol":"amqp","port":5672}],` +
			`"exchange_types":[{"name":"direct"},{"name":"fanout"}]}`,
		"/api/vhosts": `[{"name":"/","dir":"42099b4af021e53fd8fd4e056c2568d7c2e3ffa8","tracing":false,"cluster_state":{}}]`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		if !known {
			answer = "[]"
		}
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server.URL
}
