package keys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Create adds a key to a file and returns its secret, which cannot be seen again. It creates the file and its
// directory if they are missing. Names need not be unique. Concurrent calls, also of other processes, wait for one
// another. After an error the file is as it was.
func Create(path string, spec Spec, now time.Time) (secret string, key Key, err error) {
	if err := spec.Validate(now); err != nil {
		return "", Key{}, fmt.Errorf("create key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", Key{}, fmt.Errorf("create directory of the key file: %w", err)
	}
	err = update(path, func(keys []Key) ([]Key, error) {
		if len(keys) >= MaxKeys {
			return nil, fmt.Errorf("the file holds %d keys, the most allowed; delete revoked keys from it", len(keys))
		}
		var digest string
		secret, digest = newSecret()
		key = Key{
			ID: publicID(digest), Name: spec.Name, SHA256: digest, Created: now.UTC().Truncate(time.Second),
			Expires: spec.Expires.UTC().Truncate(time.Second), PerMinute: spec.PerMinute, PerDay: spec.PerDay,
		}
		return append(keys, key), nil // a repeated id, 1 of 28 billion with 10,000 keys, is refused before it is written
	})
	if err != nil {
		return "", Key{}, fmt.Errorf("create key: %w", err)
	}
	return secret, key, nil
}

// Revoke marks a key as revoked and returns it. The key is named by its id, or by its name if it is the only key of
// that name that is not revoked yet. It stays in the file. After an error the file is as it was.
func Revoke(path, idOrName string, now time.Time) (Key, error) {
	var revoked Key
	err := exists(path)
	if err == nil {
		err = update(path, func(keys []Key) ([]Key, error) {
			at, err := find(keys, idOrName)
			if err != nil {
				return nil, err
			}
			keys[at].Revoked = now.UTC().Truncate(time.Second)
			revoked = keys[at]
			return keys, nil
		})
	}
	if err != nil {
		return Key{}, fmt.Errorf("revoke key: %w", err)
	}
	return revoked, nil
}

// List returns the keys of a file in the order of their creation. A missing file is an error.
func List(path string) ([]Key, error) {
	var keys []Key
	err := exists(path)
	if err == nil {
		keys, err = load(path)
	}
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// exists returns an error that says how to create the key file if there is no such file.
func exists(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key file missing: %s: \"strikecache keys create NAME\" creates the file with a first key; "+
			"if the file is elsewhere, give --keys-file or --data-dir", path)
	}
	return nil
}

// find returns the index of the key to revoke.
func find(keys []Key, idOrName string) (int, error) {
	if strings.HasPrefix(idOrName, secretPrefix) { // an error must not repeat it
		return 0, fmt.Errorf("that is a secret; the id of its key is %s", publicID(digestOf(idOrName)))
	}
	var named []int
	var ids []string
	was := ""
	for i, k := range keys {
		revoked := !k.Revoked.IsZero()
		switch {
		case k.ID == idOrName && revoked:
			return 0, fmt.Errorf("%s was revoked at %s", k.ID, k.Revoked.Format(time.RFC3339))
		case k.ID == idOrName:
			return i, nil
		case k.Name == idOrName && revoked:
			was = fmt.Sprintf("%s was revoked at %s", k.ID, k.Revoked.Format(time.RFC3339))
		case k.Name == idOrName:
			named, ids = append(named, i), append(ids, k.ID)
		}
	}
	switch {
	case len(named) == 1:
		return named[0], nil
	case len(named) > 1:
		return 0, fmt.Errorf("%d keys are named %q: give one of the ids %s", len(named), idOrName, strings.Join(ids, ", "))
	case was != "":
		return 0, fmt.Errorf("no other key is named %q: %s", idOrName, was)
	}
	return 0, fmt.Errorf("no key has the id or name %.64q", idOrName)
}
