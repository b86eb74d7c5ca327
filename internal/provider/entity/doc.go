// Package entity is what all resources and data sources have in common: how Terraform's calls lead to the
// session, to the checks and to the broker, and what users are told when one of them fails.
//
// A resource is a Kind: its schema, its model, what the model expands to and owns, and the checks that are
// particular to it. New makes the resource of it. A data source is a View.
package entity
