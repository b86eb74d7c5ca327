package user

import (
	"bytes"
	"crypto/md5" //nolint:gosec // old brokers have it
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"hash"
	"slices"

	"github.com/rabbitmq-retry/terraform-provider-rabbitmq/internal/broker"
)

// algorithms are the hashes that a user can have.
var algorithms = map[string]func() hash.Hash{
	"rabbit_password_hashing_sha256": sha256.New, "rabbit_password_hashing_sha512": sha512.New, "rabbit_password_hashing_md5": md5.New,
}

// saltLength is the number of bytes before the hash (rabbit_password:salt_hash).
const saltLength = 4

// isHash reports whether a text can be a salted hash. A broker takes other texts too, and the user then cannot log in.
func isHash(text string) bool {
	decoded, err := base64.StdEncoding.DecodeString(text)
	return err == nil && slices.Contains([]int{md5.Size, sha256.Size, sha512.Size}, len(decoded)-saltLength)
}

// matches reports whether a password has the account's hash. If the hash or its algorithm is unknown, it returns true.
func matches(account broker.Account, password string) bool {
	if account.HashHidden {
		return true
	}
	stored, err := base64.StdEncoding.DecodeString(account.PasswordHash)
	if err != nil || len(stored) < saltLength {
		return false
	}
	algorithm, known := algorithms[account.HashingAlgorithm]
	if !known {
		return true
	}
	salted := algorithm()
	salted.Write(stored[:saltLength])
	salted.Write([]byte(password))
	return bytes.Equal(stored[saltLength:], salted.Sum(nil))
}
