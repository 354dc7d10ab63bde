package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"strikecache/server/watch"
	"strikecache/snapshots"
)

const (
	// fileFormat is the version of the key file that is written and read.
	fileFormat = 1
	// maxFile bounds a key file in bytes; 10,000 keys with the longest names take 3.7 MB.
	maxFile = 4 << 20
)

// readPrivate reads a key file: a regular file of bounded size that only its owner may use.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	switch mode := info.Mode(); {
	case mode&os.ModeSymlink != 0:
		return nil, fmt.Errorf("key file %s is a symbolic link; give the file itself", path)
	case !mode.IsRegular():
		return nil, fmt.Errorf("key file %s is not a regular file", path)
	case checksModes && mode&0o077 != 0:
		return nil, fmt.Errorf("key file %s has mode %04o: others than its owner may use it; run chmod 600 %s", path, mode.Perm(), path)
	}
	text, err := watch.ReadFile(path, maxFile)
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	return text, nil
}

// load reads the keys of a file. Errors that wrap fs.ErrNotExist say that there is no file.
func load(path string) ([]Key, error) {
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

// update replaces a key file by a changed one, under a lock that every writer takes. A missing file has no keys.
// After an error the file is as it was.
func update(path string, change func([]Key) ([]Key, error)) error {
	if _, err := load(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // and leave no lock beside a file that is not a key file
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return err
	}
	defer unlock()
	keys, err := load(path)
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
	if _, err := decode(text); err != nil {
		return fmt.Errorf("refuse to write a file that could not be read: %w", err)
	}
	return snapshots.WritePrivateFile(filepath.Dir(path), filepath.Base(path), text)
}

// sweep removes the temporary files that writers of a key file left when they were killed. A temporary file that
// cannot be removed does no harm.
func sweep(path string) {
	unfinished := func() []string { return snapshots.Unfinished(filepath.Dir(path), filepath.Base(path)) }
	if len(unfinished()) == 0 {
		return // without a lock file
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return
	}
	defer unlock()
	for _, file := range unfinished() { // those of a writer that has just finished are gone
		os.Remove(file)
	}
}

// encode returns the text of a key file. It does not judge the keys; decode does.
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

// decode reads the text of a key file strictly: a limit that a typing error hid must not become unlimited. An error
// in a record names the record. No error quotes a digest.
func decode(text []byte) ([]Key, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("over %d bytes", maxFile)
	}
	if err := checkNames(json.NewDecoder(bytes.NewReader(text)), 0); err != nil {
		return nil, readable(err)
	}
	var f struct {
		Format int               `json:"format"`
		Keys   []json.RawMessage `json:"keys"`
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
	seen := make(map[string]int, len(keys))
	for i, record := range f.Keys {
		k := &keys[i]
		if err := decodeKey(record, k); err != nil {
			return nil, fmt.Errorf("key %d, named %.64q: %w", i+1, k.Name, err)
		}
		// The id is made of the digest, so that equal digests have equal ids.
		if first, ok := seen[k.ID]; ok {
			return nil, fmt.Errorf("key %d, named %.64q: id %s is that of key %d too", i+1, k.Name, k.ID, first+1)
		}
		seen[k.ID] = i
	}
	return keys, nil
}

// decodeKey reads a record. After an error the key has its name, if it could be read.
func decodeKey(text []byte, k *Key) error {
	var record struct {
		*Key
		PerMinute *int   `json:"per_minute"` // absent must not mean unlimited
		PerDay    *int64 `json:"per_day"`
	}
	record.Key = k
	if err := strictly(text, &record); err != nil {
		return err
	}
	if record.PerMinute == nil || record.PerDay == nil {
		return errors.New("per_minute and per_day must both be there; 0 is unlimited")
	}
	k.PerMinute, k.PerDay = *record.PerMinute, *record.PerDay
	k.Created, k.Expires, k.Revoked = k.Created.UTC(), k.Expires.UTC(), k.Revoked.UTC()
	return k.validate()
}

// strictly decodes exactly one JSON value without unknown members.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return readable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("the file goes on after the end of the JSON")
	}
	return nil
}

// checkNames reads one JSON value and refuses what encoding/json accepts: a member that is there twice, and a name
// that differs in case from the right one.
func checkNames(d *json.Decoder, depth int) error {
	token, err := d.Token()
	opened, nested := token.(json.Delim)
	if err != nil || !nested {
		return err
	}
	if depth == 3 { // the file, its keys, a key
		return errors.New("there is JSON inside a member of a key")
	}
	seen := map[string]bool{}
	for d.More() {
		if opened == '{' {
			member, err := d.Token()
			if err != nil {
				return err
			}
			name, _ := member.(string)
			if seen[name] {
				return fmt.Errorf("member %.64q is there twice", name)
			}
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
				return fmt.Errorf("unknown field %.64q", name)
			}
			seen[name] = true
		}
		if err := checkNames(d, depth+1); err != nil {
			return err
		}
	}
	_, err = d.Token() // the end of the object or array
	return err
}

// readable returns a JSON error without the types of Go.
func readable(err error) error {
	var typ *json.UnmarshalTypeError
	var when *time.ParseError
	switch {
	case errors.As(err, &typ) && typ.Field == "":
		return fmt.Errorf("there is a JSON %s where an object must be", typ.Value)
	case errors.As(err, &typ):
		return fmt.Errorf("%s must not be a JSON %s", strings.TrimPrefix(typ.Field, "Key."), typ.Value)
	case errors.As(err, &when), strings.HasPrefix(err.Error(), "Time."):
		return errors.New("a time is not RFC 3339, such as 2026-11-20T16:00:00Z")
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON ends too early")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
