// Package terraformtest runs the real Terraform or OpenTofu for a test, in a directory of the test's
// own, with the provider as it stands in this repository.
//
//	tf := terraformtest.New(t)
//	tf.Write(t, "main.tf", config)
//	tf.Run(t, "apply", "-auto-approve", "-input=false")
//
// It is for tests only, and for those that measure or interrupt what a user runs: the acceptance
// tests of the provider need no binary. scripts/with-terraform names the CLI in the environment.
package terraformtest
