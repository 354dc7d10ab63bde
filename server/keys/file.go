package keys

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"
)

const (
	// fileFormat is the version of the key file that is written and read.
	fileFormat = 1
	// maxFile bounds a key file in bytes; 10,000 keys with the longest names take 3.7 MB.
	maxFile = 4 << 20
)

type keyFile struct {
	Format int               `json:"format"`
	Keys   []json.RawMessage `json:"keys"`
}

// decode reads a key file strictly: what the writer would not have written, white space aside, is an error, and one
// in a record names the record. No error quotes a digest.
func decode(text []byte) ([]Key, error) {
	if len(text) > maxFile {
		return nil, fmt.Errorf("over %d bytes", maxFile)
	}
	if err := checkNames(text); err != nil {
		return nil, err
	}
	var f keyFile
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
	for i, raw := range f.Keys {
		k := &keys[i]
		if err := decodeKey(raw, k); err != nil {
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
func decodeKey(raw []byte, k *Key) error {
	var record struct {
		*Key
		PerMinute *int   `json:"per_minute"` // absent must not mean unlimited
		PerDay    *int64 `json:"per_day"`
	}
	record.Key = k
	if err := strictly(raw, &record); err != nil {
		return err
	}
	if record.PerMinute == nil || record.PerDay == nil {
		return errors.New("per_minute and per_day must both be there; 0 is unlimited")
	}
	k.PerMinute, k.PerDay = *record.PerMinute, *record.PerDay
	k.Created, k.Expires, k.Revoked = k.Created.UTC(), k.Expires.UTC(), k.Revoked.UTC()
	return k.validate()
}

// encode returns the key file.
func encode(keys []Key) ([]byte, error) {
	if len(keys) > MaxKeys {
		return nil, fmt.Errorf("%d keys, at most %d are allowed", len(keys), MaxKeys)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(struct {
		Format int   `json:"format"`
		Keys   []Key `json:"keys"`
	}{fileFormat, append([]Key{}, keys...)})
	if err == nil && b.Len() > maxFile {
		err = fmt.Errorf("the file would have %d bytes, over %d", b.Len(), maxFile)
	}
	return b.Bytes(), err
}

// strictly decodes exactly one JSON value without unknown members.
func strictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return readable(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something after the end of the JSON")
	}
	return nil
}

// readable keeps Go's types out of a JSON error.
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

// checkNames refuses what encoding/json lets pass: a member that is there twice, or is spelled differently, which is
// the same to it if only the case differs.
func checkNames(text []byte) error {
	const depth = 3 // the file, its keys, a key
	type level struct {
		object bool
		value  bool // whether a member's value comes next
		names  map[string]bool
	}
	var stack []level
	d := json.NewDecoder(bytes.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) && len(stack) == 0 {
			return nil
		}
		if err != nil {
			return readable(err)
		}
		if token == json.Delim('}') || token == json.Delim(']') {
			stack = stack[:len(stack)-1]
			continue
		}
		if n := len(stack); n > 0 && stack[n-1].object {
			top := &stack[n-1]
			if top.value = !top.value; top.value {
				name, _ := token.(string)
				if top.names[name] {
					return fmt.Errorf("member %.64q is there twice", name)
				}
				if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != "" {
					return fmt.Errorf("unknown field %.64q", name)
				}
				top.names[name] = true
				continue
			}
		}
		if token == json.Delim('{') || token == json.Delim('[') {
			if len(stack) == depth {
				return errors.New("there is JSON inside a member of a key")
			}
			stack = append(stack, level{object: token == json.Delim('{'), names: map[string]bool{}})
		}
	}
}

// load reads the keys of a file; a missing file has none.
func load(path string) ([]Key, error) {
	text, _, err := read(path, maxFile, checkPrivate)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("key file: %w", err)
	}
	keys, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("key file %s: %w", path, err)
	}
	return keys, nil
}
