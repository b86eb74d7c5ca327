// Package audit finds the ways in which a vhost loses dead letters.
//
// It is pure: the listing of a vhost goes in, and every message that would be dropped, go round in
// circles or be stuck when it dies comes out as a finding, with what to do about it. It follows every
// way from every queue that dead-letters, whoever created it, and claims nothing that the broker does
// not report: where a routing key cannot be known, any way that it may take counts as one.
package audit
