package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// settings come from the environment.
type settings struct {
	endpoint, uri, username, password string
	// provider and sidecar are the binaries to show. terraform is the CLI that runs the provider.
	provider, sidecar, terraform string
}

func readSettings(getenv func(string) string) (settings, error) {
	s := settings{
		endpoint: getenv("RABBITMQ_ENDPOINT"),
		uri:      getenv("RABBITMQ_URI"),
		username: getenv("RABBITMQ_USERNAME"),
		password: getenv("RABBITMQ_PASSWORD"),
	}
	if s.endpoint == "" || s.uri == "" || s.username == "" {
		return s, fmt.Errorf("no broker: RABBITMQ_ENDPOINT, RABBITMQ_URI and RABBITMQ_USERNAME are not all set; run `make demo`")
	}
	bin, err := filepath.Abs(getenv("DEMO_BIN"))
	if err != nil || getenv("DEMO_BIN") == "" {
		return s, fmt.Errorf("DEMO_BIN is not the directory of the built binaries; run `make demo`")
	}
	s.provider = filepath.Join(bin, "terraform-provider-rabbitmq")
	s.sidecar = filepath.Join(bin, "rabbitmq-retry")
	for _, binary := range []string{s.provider, s.sidecar} {
		if _, err := os.Stat(binary); err != nil {
			return s, fmt.Errorf("DEMO_BIN: %w", err)
		}
	}
	for _, name := range []string{getenv("TF_ACC_TERRAFORM_PATH"), "terraform", "tofu"} {
		if name == "" {
			continue
		}
		if s.terraform, err = exec.LookPath(name); err == nil {
			return s, nil
		}
	}
	return s, fmt.Errorf("neither terraform nor tofu is on PATH: install one, or set TF_ACC_TERRAFORM_PATH")
}
