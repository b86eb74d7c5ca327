// Package view shows failed messages to people and programs: tables, JSON, and one message in full.
package view
