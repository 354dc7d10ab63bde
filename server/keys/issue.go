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

// Create adds a key to a file, which it creates with its directory if it is missing, and returns its secret: the
// one time that it can be seen. Names need not be unique. Concurrent calls, also of other processes, wait for one
// another; after an error the file is as it was.
func Create(path string, spec Spec, now time.Time) (secret string, key Key, err error) {
	if err := spec.Validate(now); err != nil {
		return "", Key{}, fmt.Errorf("create key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", Key{}, fmt.Errorf("create directory of the key file: %w", err)
	}
	err = update(path, func(keys []Key) ([]Key, error) {
		if len(keys) >= MaxKeys {
			return nil, fmt.Errorf("the file holds %d keys, the most allowed; delete revoked ones from it", len(keys))
		}
		var digest string
		secret, digest = newSecret()
		key = Key{
			ID: publicID(digest), Name: spec.Name, SHA256: digest, Created: now.UTC().Truncate(time.Second),
			Expires: spec.Expires.UTC().Truncate(time.Second), PerMinute: spec.PerMinute, PerDay: spec.PerDay,
		}
		for _, k := range keys {
			if k.ID == key.ID { // 1 of 28 billion with 10,000 keys
				return nil, fmt.Errorf("the new id %s exists already; try again", key.ID)
			}
		}
		return append(keys, key), nil
	})
	if err != nil {
		return "", Key{}, fmt.Errorf("create key: %w", err)
	}
	return secret, key, nil
}

// Revoke marks a key as revoked, by its id or by the name of the one key that is not revoked yet, and returns it.
// It stays in the file. After an error the file is as it was.
func Revoke(path, idOrName string, now time.Time) (Key, error) {
	if _, err := os.Lstat(path); err != nil {
		return Key{}, fmt.Errorf("revoke key: %w", err)
	}
	var revoked Key
	err := update(path, func(keys []Key) ([]Key, error) {
		at, err := find(keys, idOrName)
		if err != nil {
			return nil, err
		}
		keys[at].Revoked = now.UTC().Truncate(time.Second)
		revoked = keys[at]
		return keys, nil
	})
	if err != nil {
		return Key{}, fmt.Errorf("revoke key: %w", err)
	}
	return revoked, nil
}

// find returns the index of the key to revoke.
func find(keys []Key, idOrName string) (int, error) {
	if strings.HasPrefix(idOrName, secretPrefix) { // never repeat it
		return 0, fmt.Errorf("that is a secret; the id of its key is %s", publicID(digestOf(idOrName)))
	}
	var named []int
	var ids []string
	was := ""
	for i, k := range keys {
		gone := !k.Revoked.IsZero()
		switch {
		case k.ID == idOrName && gone:
			return 0, fmt.Errorf("%s is revoked since %s", k.ID, k.Revoked.Format(time.RFC3339))
		case k.ID == idOrName:
			return i, nil
		case k.Name == idOrName && gone:
			was = fmt.Sprintf("%s is revoked since %s", k.ID, k.Revoked.Format(time.RFC3339))
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

// List returns the keys of a file in the order of their creation. A missing file is an error.
func List(path string) ([]Key, error) {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list keys: there is no key file %s yet: keys create makes it", path)
	} else if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	keys, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return keys, nil
}

// update replaces a key file by a changed one, under a lock that every writer takes.
func update(path string, change func([]Key) ([]Key, error)) error {
	if _, err := inspect(path, checkPrivate); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("key file: %w", err)
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	keys, err := load(path)
	if err != nil {
		return err
	}
	if keys, err = change(keys); err != nil {
		return err
	}
	text, err := encode(keys)
	if err != nil {
		return err
	}
	if _, err := decode(text); err != nil {
		return fmt.Errorf("refuse to write a file that could not be read: %w", err)
	}
	return system.replace(path, text)
}
