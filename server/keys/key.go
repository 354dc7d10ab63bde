// Package keys creates API keys and finds the key of a request.
//
// A key is a random secret that [Create] returns once. The key file has the SHA-256 of the secret, a name, limits and an expiry. Only
// its owner may read the file, and every change replaces the whole file. The server has the keys in a [Table], which loads the file
// again when it changes. [Table.Lookup] hashes the secret of a request and finds the [Entry], whose Admit decides about the request.
// [Counts] keeps the day's counts over a restart. No secret is ever stored or logged.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"strikecache/server/limits"
)

const (
	secretPrefix = "sk_"
	secretBytes  = 32 // of randomness
	idPrefix     = "k_"
	idDigits     = 12

	// MaxKeys is how many keys a file may hold, including revoked keys.
	MaxKeys = 10_000
	// MaxName is the longest name, in characters.
	MaxName = 64
)

// Key is a key without its secret.
type Key struct {
	// ID names the key in public: k_ and the first 12 hexadecimal digits of SHA256.
	ID string `json:"id"`
	// Name is chosen by the operator, 1 to 64 printable characters. Of the keys that are not revoked, only one has this name.
	Name string `json:"name"`
	// SHA256 is the digest of the secret, 64 lower-case hexadecimal digits.
	SHA256  string    `json:"sha256"`
	Created time.Time `json:"created"`
	// Expires is the first instant at which the key is no longer accepted; zero: never.
	Expires time.Time `json:"expires,omitzero"`
	// PerMinute is the rate in requests a minute, 0 to [limits.MaxPerMinute]; 0: unlimited.
	PerMinute int `json:"per_minute"`
	// PerDay is the quota in requests a UTC day, 0 to [limits.MaxPerDay]; 0: unlimited.
	PerDay int64 `json:"per_day"`
	// Revoked is when the key was revoked; zero: it was not. A revoked key is never accepted.
	Revoked time.Time `json:"revoked,omitzero"`
}

// The states of a key. Only an active key is accepted.
const (
	active  = "active"
	expired = "expired"
	revoked = "revoked"
)

// State returns active, expired or revoked. It never allocates.
func (k Key) State(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return revoked
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return expired
	}
	return active
}

// validate returns an error that says which value of a key is wrong, and what is valid.
func (k Key) validate() error {
	switch digest, err := hex.DecodeString(k.SHA256); {
	case k.Name == "" || utf8.RuneCountInString(k.Name) > MaxName:
		return fmt.Errorf("the name must have 1 to %d characters", MaxName)
	case strings.HasPrefix(k.Name, secretPrefix):
		return fmt.Errorf("the name must not begin with %s, as secrets do", secretPrefix)
	case !utf8.ValidString(k.Name) || strings.ContainsFunc(k.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name must have printable characters only")
	case k.PerMinute < 0 || k.PerMinute > limits.MaxPerMinute:
		return fmt.Errorf("the rate must be from 0 (unlimited) to %d requests a minute, not %d", limits.MaxPerMinute, k.PerMinute)
	case k.PerDay < 0 || k.PerDay > limits.MaxPerDay:
		return fmt.Errorf("the quota must be from 0 (unlimited) to %d requests a day, not %d", limits.MaxPerDay, k.PerDay)
	case k.Created.IsZero():
		return errors.New("created is missing")
	case err != nil || len(digest) != sha256.Size || strings.ToLower(k.SHA256) != k.SHA256:
		return fmt.Errorf("sha256 is not %d lower-case hexadecimal digits", 2*sha256.Size)
	case k.ID != publicID(k.SHA256):
		return fmt.Errorf("id is not %s, the id that belongs to its sha256", publicID(k.SHA256))
	}
	return nil
}

// publicID returns the id of the key whose secret has a digest, in hexadecimal.
func publicID(digest string) string { return idPrefix + digest[:idDigits] }

// newSecret returns a random secret and its SHA-256 in hexadecimal.
func newSecret() (secret, digest string) {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never returns an error
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	return secret, digestOf(secret)
}

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
