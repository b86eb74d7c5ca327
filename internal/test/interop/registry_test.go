//go:build interop

package interop

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/registry"
	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/test/terraformtest"
)

// A release is a folder with the files of a release, and the public key of their signatures.
type release struct {
	folder, key string
	// spoil changes a file on its way.
	spoil func(name string, content []byte) []byte
}

// releaseUnderTest is the one in the folder RELEASE, whose key is next to it, or else this build.
func releaseUnderTest(t *testing.T) release {
	t.Helper()
	if folder := os.Getenv("RELEASE"); folder != "" {
		key, err := os.ReadFile(filepath.Join(folder, "../public-key.asc"))
		require.NoError(t, err)
		return release{folder: folder, key: string(key)}
	}
	return buildRelease(t)
}

const (
	releaseVersion = "0.1.0"
	zips           = "terraform-provider-rabbitmq_*_*.zip"
)

var onePlatform = fmt.Sprintf("%s_%s_%s", releaseVersion, runtime.GOOS, runtime.GOARCH)

// buildRelease makes a release for this platform.
func buildRelease(t *testing.T) release {
	t.Helper()
	r := release{folder: t.TempDir()}
	add := func(name string, content []byte) {
		require.NoError(t, os.WriteFile(filepath.Join(r.folder, name), content, 0o600))
	}
	provider, err := os.ReadFile(filepath.Join(terraformtest.BuildProvider(t), "terraform-provider-rabbitmq"))
	require.NoError(t, err)
	zipName := "terraform-provider-rabbitmq_" + onePlatform + ".zip"
	archive := zipped(t, "terraform-provider-rabbitmq_v"+releaseVersion, provider)
	add(zipName, archive)
	sums := fmt.Appendf(nil, "%s  %s\n", sum(archive), zipName)
	add(r.sums(releaseVersion), sums)
	signature, key := signed(t, sums)
	add(r.sums(releaseVersion)+".sig", signature)
	r.key = key
	manifest, err := os.ReadFile("../../../terraform-registry-manifest.json")
	require.NoError(t, err)
	add("terraform-provider-rabbitmq_"+releaseVersion+"_manifest.json", manifest)

	sidecar := terraformtest.BuildSidecar(t)
	require.NoError(t, exec.CommandContext(t.Context(), "tar", "--create", "--gzip", "--file",
		filepath.Join(r.folder, "rabbitmq-retry_"+onePlatform+".tar.gz"), "--directory", filepath.Dir(sidecar), filepath.Base(sidecar)).Run())
	return r
}

func zipped(t *testing.T, name string, content []byte) []byte {
	t.Helper()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	header := &zip.FileHeader{Name: name, Method: zip.Store}
	header.SetMode(0o755)
	file, err := writer.CreateHeader(header)
	require.NoError(t, err)
	_, err = file.Write(content)
	require.NoError(t, err)
	require.NoError(t, writer.Close())
	return archive.Bytes()
}

func signed(t *testing.T, content []byte) (signature []byte, publicKey string) {
	t.Helper()
	entity, err := openpgp.NewEntity("Test", "", "test@example.com", &packet.Config{RSABits: 2048})
	require.NoError(t, err)
	var sig, key bytes.Buffer
	require.NoError(t, openpgp.DetachSign(&sig, entity, bytes.NewReader(content), nil))
	writer, err := armor.Encode(&key, openpgp.PublicKeyType, nil)
	require.NoError(t, err)
	require.NoError(t, entity.Serialize(writer))
	require.NoError(t, writer.Close())
	return sig.Bytes(), key.String()
}

func sum(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

func (release) sums(version string) string {
	return "terraform-provider-rabbitmq_" + version + "_SHA256SUMS"
}

var zipName = regexp.MustCompile(`terraform-provider-rabbitmq_(.+)_(.+)_(.+)\.zip$`)

// platforms returns the version and the platforms in the names of the zips.
func (r release) platforms(t *testing.T) (version string, platforms []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(r.folder, zips))
	require.NoError(t, err)
	require.NotEmpty(t, files, r.folder)
	for _, file := range files {
		found := zipName.FindStringSubmatch(file)
		version, platforms = found[1], append(platforms, found[2]+"_"+found[3])
	}
	return version, platforms
}

// serve is a provider registry, with the files of the release below /files/. It returns the address, and shell commands that make
// Terraform, OpenTofu and curl use it.
// Source: https://developer.hashicorp.com/terraform/internals/provider-registry-protocol
func (r release) serve(t *testing.T) (address, use string) {
	t.Helper()
	version, platforms := r.platforms(t)
	manifest := struct {
		Metadata struct {
			Protocols []string `json:"protocol_versions"`
		} `json:"metadata"`
	}{}
	require.NoError(t, json.Unmarshal(r.read(t, "terraform-provider-rabbitmq_"+version+"_manifest.json"), &manifest))
	protocols := manifest.Metadata.Protocols
	keys, err := openpgp.ReadArmoredKeyRing(strings.NewReader(r.key))
	require.NoError(t, err)

	mux := http.NewServeMux()
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	files, base := server.URL+"/files/", "/v1/providers/"+registry.Source
	answer := func(w http.ResponseWriter, content any) {
		w.Header().Set("Content-Type", "application/json")
		assert.NoError(t, json.NewEncoder(w).Encode(content))
	}
	mux.HandleFunc("GET "+base+"/versions", func(w http.ResponseWriter, _ *http.Request) {
		var all []map[string]string
		for _, platform := range platforms {
			system, architecture, _ := strings.Cut(platform, "_")
			all = append(all, map[string]string{"os": system, "arch": architecture})
		}
		answer(w, map[string]any{"versions": []any{map[string]any{"version": version, "protocols": protocols, "platforms": all}}})
	})
	mux.HandleFunc("GET "+base+"/"+version+"/download/{os}/{arch}", func(w http.ResponseWriter, request *http.Request) {
		system, architecture := request.PathValue("os"), request.PathValue("arch")
		name := fmt.Sprintf("terraform-provider-rabbitmq_%s_%s_%s.zip", version, system, architecture)
		answer(w, map[string]any{
			"protocols": protocols, "os": system, "arch": architecture, "filename": name, "download_url": files + name,
			"shasums_url": files + r.sums(version), "shasums_signature_url": files + r.sums(version) + ".sig", "shasum": sum(r.read(t, name)),
			"signing_keys": map[string]any{"gpg_public_keys": []any{map[string]any{
				"key_id": keys[0].PrimaryKey.KeyIdString(), "ascii_armor": r.key,
			}}},
		})
	})
	mux.HandleFunc("GET /files/{name}", func(w http.ResponseWriter, request *http.Request) {
		content := r.read(t, request.PathValue("name"))
		if r.spoil != nil {
			content = r.spoil(request.PathValue("name"), content)
		}
		_, _ = w.Write(content) // the client can be gone
	})
	return server.URL, useOf(t, server)
}

func (r release) read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(r.folder, name))
	assert.NoError(t, err)
	return content
}

func useOf(t *testing.T, server *httptest.Server) string {
	t.Helper()
	folder := t.TempDir()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(filepath.Join(folder, "ca.pem"), certificate, 0o600))
	var settings strings.Builder
	for _, host := range []string{"registry.terraform.io", "registry.opentofu.org"} {
		fmt.Fprintf(&settings, "host %q {\n  services = { \"providers.v1\" = \"%s/v1/providers/\" }\n}\n", host, server.URL)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "registry.tfrc"), []byte(settings.String()), 0o600))
	return fmt.Sprintf("export SSL_CERT_FILE=%s/ca.pem TF_CLI_CONFIG_FILE=%[1]s/registry.tfrc CHECKPOINT_DISABLE=1\n", folder)
}

const requires = `terraform {
  required_providers {
    rabbitmq = {
      source  = "` + registry.Source + `"
      version = "~> 0.1"
    }
  }
}
`

// terraformFrom runs Terraform's command in an empty folder, with the provider of the release.
func terraformFrom(t *testing.T, r release, commands string) (directory, output string, err error) {
	t.Helper()
	_, use := r.serve(t)
	directory = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(directory, "main.tf"), []byte(requires), 0o600))
	command := exec.CommandContext(t.Context(), "bash", "-ec", use+commands)
	command.Dir, command.Env = directory, append(os.Environ(), "PATH="+terraformtest.OnPath(t)+":"+os.Getenv("PATH"))
	text, err := command.CombinedOutput()
	return directory, colour.ReplaceAllString(string(text), ""), err
}

// ours are platforms that a team has.
var ours = []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "windows_amd64"}

// Terraform installs the provider of a registry, and locks it for several platforms.
func TestRegistryInstalls(t *testing.T) {
	t.Parallel()
	r := releaseUnderTest(t)
	version, all := r.platforms(t)
	lock := slices.DeleteFunc(slices.Clone(ours), func(platform string) bool { return !slices.Contains(all, platform) })
	directory, output, err := terraformFrom(t, r, "terraform init\nterraform version\nterraform providers lock -platform="+strings.Join(lock, " -platform="))
	require.NoError(t, err, output)
	assert.Contains(t, output, "Installed "+registry.Source+" v"+version+" (self-signed, key ID ")
	content, err := os.ReadFile(filepath.Join(directory, ".terraform.lock.hcl"))
	require.NoError(t, err)
	assert.Equal(t, len(lock), strings.Count(string(content), `"h1:`), string(content))
	assert.GreaterOrEqual(t, strings.Count(string(content), `"zh:`), len(all), string(content))
}

// Terraform refuses a zip or sums that changed after the signature.
func TestRegistryWithOtherFiles(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		spoil func(name string, content []byte) []byte
		error string
	}{
		"a zip with one more byte": {func(name string, content []byte) []byte {
			if strings.HasSuffix(name, ".zip") {
				return append(content, 0)
			}
			return content
		}, "incorrect checksum"},
		"sums with one more line": {func(name string, content []byte) []byte {
			if strings.HasSuffix(name, "_SHA256SUMS") {
				return append(content, strings.Repeat("0", 64)+"  x\n"...)
			}
			return content
		}, "signature"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := releaseUnderTest(t)
			r.spoil = of.spoil
			_, output, err := terraformFrom(t, r, "terraform init")
			require.Error(t, err)
			assert.Contains(t, output, of.error)
		})
	}
}
