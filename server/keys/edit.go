package keys

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Create adds a key to a file and returns its secret, which cannot be seen again. The caller fills in the name, the limits
// and the expiry, and Create sets the other fields. It creates the file and its directory if they are missing. It refuses the name
// of another key that is not revoked. Concurrent calls wait for one another, even in different processes. After an error the file is
// as it was.
func Create(path string, spec Key, now time.Time) (secret string, key Key, err error) {
	secret, digest := newSecret()
	key = spec
	key.ID, key.SHA256, key.Created, key.Revoked = publicID(digest), digest, now.UTC().Truncate(time.Second), time.Time{}
	key.Expires = key.Expires.UTC().Truncate(time.Second)
	if err = key.validate(); err == nil && key.State(now) == expired {
		err = fmt.Errorf("expiry %s is not in the future", key.Expires.Format(time.RFC3339))
	}
	if err != nil {
		return "", Key{}, fmt.Errorf("create key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", Key{}, fmt.Errorf("create directory of the key file: %w", err)
	}
	if err := update(path, func(keys []Key) ([]Key, error) { return append(keys, key), nil }); err != nil {
		return "", Key{}, fmt.Errorf("create key: %w", err)
	}
	return secret, key, nil
}

// Revoke marks a key as revoked and returns the key, which stays in the file. idOrName is the key's id, or the name of a key that is not
// revoked. After an error the file is as it was.
func Revoke(path, idOrName string, now time.Time) (Key, error) {
	var key Key
	_, err := List(path)
	if err == nil { // without a key file, update would leave a lock file
		err = update(path, func(keys []Key) ([]Key, error) {
			at, err := find(keys, idOrName)
			if err != nil {
				return nil, err
			}
			keys[at].Revoked = now.UTC().Truncate(time.Second)
			key = keys[at]
			return keys, nil
		})
	}
	if err != nil {
		return Key{}, fmt.Errorf("revoke key: %w", err)
	}
	return key, nil
}

func find(keys []Key, idOrName string) (int, error) {
	if strings.HasPrefix(idOrName, secretPrefix) { // the error must not contain the secret
		return 0, fmt.Errorf("that is a secret; the id of its key is %s", publicID(digestOf(idOrName)))
	}
	at := slices.IndexFunc(keys, func(k Key) bool { return k.ID == idOrName })
	if at < 0 {
		at = slices.IndexFunc(keys, func(k Key) bool { return k.Name == idOrName && k.Revoked.IsZero() })
	}
	if at < 0 {
		return 0, fmt.Errorf("found no unrevoked key with the id or name %.64q", idOrName)
	}
	if k := keys[at]; !k.Revoked.IsZero() {
		return 0, fmt.Errorf("%s was revoked at %s", k.ID, k.Revoked.Format(time.RFC3339))
	}
	return at, nil
}
