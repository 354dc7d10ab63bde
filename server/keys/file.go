package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"strikecache/server/watch"
	"strikecache/snapshots"
)

const (
	// fileFormat is the version of the key file that is written and read.
	fileFormat = 1
	// maxFile bounds a key file in bytes; 10,000 keys with the longest names take 5.6 MB.
	maxFile = 8 << 20
	// checksModes says whether the mode of a file shows who may read it. On Windows, access control lists do.
	checksModes = runtime.GOOS != "windows"
)

// readPrivate reads a key file: a regular file of bounded size that only its owner may use.
func readPrivate(path string) ([]byte, error) {
	var text []byte
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("key file missing: %s: \"strikecache keys create NAME\" creates it with a first key; "+
			"if yours is elsewhere, give --data-dir: %w", path, fs.ErrNotExist)
	case err != nil:
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("key file %s is not a regular file; a link to one is refused too", path)
	case checksModes && info.Mode()&0o077 != 0:
		return nil, fmt.Errorf("key file %s has mode %04o: others than its owner may use it; run chmod 600 %s", path, info.Mode().Perm(), path)
	default:
		text, err = watch.ReadFile(path, maxFile)
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return text, nil
}

// List returns the keys of a file in the order of their creation. If the file is missing, the error wraps [fs.ErrNotExist].
func List(path string) ([]Key, error) {
	text, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	keys, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return keys, nil
}

// update replaces a key file by a changed one, under a lock that every writer takes. A missing file counts as a file without keys.
// After an error the file is as it was. update removes temporary files of killed writers.
func update(path string, change func([]Key) ([]Key, error)) error {
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	dir, name := filepath.Dir(path), filepath.Base(path)
	for _, file := range snapshots.Unfinished(dir, name) {
		_ = os.Remove(file) // if this fails, the file does no harm
	}
	keys, err := List(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if keys, err = change(keys); err != nil {
		return err
	}
	text, err := encode(keys)
	if err != nil {
		return err
	}
	if _, err := decode(text); err != nil { // too many keys, or two keys with one name or id
		return fmt.Errorf("key file not changed: %w", err)
	}
	return snapshots.WritePrivateFile(dir, name, text)
}

// encode returns the text of a key file. It does not check the keys; decode does.
func encode(keys []Key) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Format int   `json:"format"`
		Keys   []Key `json:"keys"`
	}{fileFormat, append([]Key{}, keys...)})
	return b.Bytes(), err
}

// record is a key in the file. Its limits are pointers, because a missing limit must not count as 0, which is unlimited.
type record struct {
	Key
	PerMinute *int   `json:"per_minute"`
	PerDay    *int64 `json:"per_day"`
}

// decode reads the text of a key file. It refuses unknown members: a key whose limit is misspelt must not become unlimited.
func decode(text []byte) ([]Key, error) {
	var f struct {
		Format int      `json:"format"`
		Keys   []record `json:"keys"`
	}
	if err := strictly(text, &f); err != nil {
		return nil, err
	}
	switch {
	case f.Format != fileFormat:
		return nil, fmt.Errorf("format is %d, this version reads %d", f.Format, fileFormat)
	case f.Keys == nil:
		return nil, errors.New("keys is missing")
	case len(f.Keys) > MaxKeys:
		return nil, fmt.Errorf("%d keys, at most %d are allowed", len(f.Keys), MaxKeys)
	}
	keys := make([]Key, len(f.Keys))
	ids, names := make(map[string]bool, len(keys)), map[string]string{} // the id by the name of a key that is not revoked
	for i, r := range f.Keys {
		k, err := r.key()
		switch {
		case err != nil:
		case ids[k.ID]: // ids come from digests, so equal digests have equal ids
			err = fmt.Errorf("an earlier key has the id %s too", k.ID)
		case !k.Revoked.IsZero():
		case names[k.Name] != "":
			err = fmt.Errorf("key %s has the name %q: give another name, or revoke that key first", names[k.Name], k.Name)
		default:
			names[k.Name] = k.ID
		}
		if err != nil {
			return nil, fmt.Errorf("key %d, named %.64q: %w", i+1, k.Name, err)
		}
		keys[i], ids[k.ID] = k, true
	}
	return keys, nil
}

// key returns the key of a record, valid and with its times in UTC.
func (r record) key() (Key, error) {
	k := r.Key
	if r.PerMinute == nil || r.PerDay == nil {
		return k, errors.New("per_minute and per_day must both be there; 0 is unlimited")
	}
	k.PerMinute, k.PerDay = *r.PerMinute, *r.PerDay
	k.Created, k.Expires, k.Revoked = k.Created.UTC(), k.Expires.UTC(), k.Revoked.UTC()
	return k, k.validate()
}

// strictly decodes exactly one JSON value without unknown members.
func strictly(text []byte, into any) error {
	var whole json.RawMessage
	if err := json.Unmarshal(text, &whole); err != nil { // also for text after the value
		return err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
