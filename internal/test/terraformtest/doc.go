// Package terraformtest runs the real Terraform or OpenTofu for a test, in the test's own directory, with the provider as it
// is in this repository.
//
//	tf := terraformtest.New(t)
//	tf.Write(t, "main.tf", config)
//	tf.Run(t, "apply", "-auto-approve", "-input=false")
//
// It is only for tests that measure or interrupt a command that users run. The provider's acceptance tests need no binary.
// scripts/with-terraform names the CLI in the environment.
package terraformtest
