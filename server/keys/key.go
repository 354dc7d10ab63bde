// Package keys issues API keys and recognises them.
//
// A key is a random secret that [Create] shows once. The key file holds the SHA-256 of the secret, a name, limits and
// an expiry. Only its owner may read the file, and every change replaces the whole file. The server holds the keys in
// a [Table], which follows the file. [Table.Lookup] hashes what a client presents and finds the [Entry], whose Admit
// decides about the request. A [Ledger] keeps the day's counts over a restart. No secret is ever stored or logged.
package keys

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
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
	// MaxSecret is the longest secret, in bytes, that is looked up at all.
	MaxSecret = 128
)

// Key is a key without its secret.
type Key struct {
	// ID names the key in public: k_ and the first 12 hexadecimal digits of SHA256.
	ID string `json:"id"`
	// Name is chosen by the operator, 1 to 64 printable characters. Several keys may have the same name.
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

// String returns the public id: no log shows more of a key.
func (k Key) String() string { return k.ID }

// LogValue returns the public id: no log shows more of a key.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.ID) }

// State returns active, expired or revoked.
func (k Key) State(now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked"
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired"
	}
	return "active"
}

// Spec describes a key to create. Its fields mean what those of [Key] mean.
type Spec struct {
	Name      string
	PerMinute int
	PerDay    int64
	Expires   time.Time
}

// Validate says which value of a new key is wrong, and what is right.
func (s Spec) Validate(now time.Time) error {
	if !s.Expires.IsZero() && !s.Expires.After(now) {
		return fmt.Errorf("expiry %s is not in the future", s.Expires.UTC().Format(time.RFC3339))
	}
	return s.validate()
}

func (s Spec) validate() error {
	switch {
	case s.Name == "" || utf8.RuneCountInString(s.Name) > MaxName:
		return fmt.Errorf("the name must have 1 to %d characters", MaxName)
	case strings.HasPrefix(s.Name, secretPrefix):
		return fmt.Errorf("the name must not begin with %s, as secrets do", secretPrefix)
	case !utf8.ValidString(s.Name) || strings.ContainsFunc(s.Name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the name must have printable characters only")
	case s.PerMinute < 0 || s.PerMinute > limits.MaxPerMinute:
		return fmt.Errorf("the rate must be from 0 (unlimited) to %d requests a minute, not %d", limits.MaxPerMinute, s.PerMinute)
	case s.PerDay < 0 || s.PerDay > limits.MaxPerDay:
		return fmt.Errorf("the quota must be from 0 (unlimited) to %d requests a day, not %d", limits.MaxPerDay, s.PerDay)
	case !plausible(s.Expires):
		return errors.New("the expiry must lie in the years 2000 to 2199")
	}
	return nil
}

// plausible says whether a time is zero, or can be counted in nanoseconds and written as RFC 3339.
func plausible(t time.Time) bool {
	y := t.UTC().Year()
	return t.IsZero() || y >= 2000 && y < 2200
}

// validate says what is wrong with a key that was read.
func (k Key) validate() error {
	if err := (Spec{k.Name, k.PerMinute, k.PerDay, k.Expires}).validate(); err != nil {
		return err
	}
	digest, err := hex.DecodeString(k.SHA256)
	switch {
	case err != nil || len(digest) != sha256.Size || strings.ToLower(k.SHA256) != k.SHA256:
		return fmt.Errorf("sha256 is not %d lower-case hexadecimal digits", 2*sha256.Size)
	case k.ID != publicID(k.SHA256):
		return fmt.Errorf("id is not %s, the id that belongs to its sha256", publicID(k.SHA256))
	case k.Created.IsZero() || !plausible(k.Created):
		return errors.New("created must lie in the years 2000 to 2199")
	case !plausible(k.Revoked):
		return errors.New("revoked must lie in the years 2000 to 2199")
	}
	return nil
}

// publicID returns the id of the key whose secret has a digest, in hexadecimal.
func publicID(digest string) string { return idPrefix + digest[:idDigits] }

// newSecret returns a random secret and its SHA-256 in hexadecimal.
func newSecret() (secret, digest string) {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // never fails: it ends the program instead
	secret = secretPrefix + base64.RawURLEncoding.EncodeToString(random[:])
	return secret, digestOf(secret)
}

func digestOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}
