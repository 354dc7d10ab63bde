package refresh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Difference is a JSON field whose stored value and recomputed value differ.
type Difference struct {
	Path               string // JSON path of the field
	Stored, Recomputed string // the two values as JSON, at most about 200 bytes each; "absent" where there is no such field
}

// String returns the line that `strikecache recompute` prints.
func (d Difference) String() string {
	return fmt.Sprintf("%s: stored %s, recomputed %s", d.Path, d.Stored, d.Recomputed)
}

const (
	absent = "absent"
	// maxValue is the most bytes of one value that are printed.
	maxValue = 200
)

// differences compares two JSON values and returns the fields that differ, sorted by field name and array index. Two
// numbers are equal only if their digits are: 1.0 and 1 differ. If the values differ only in spaces or in the order of
// fields, there is one difference, with the path of the whole value. An error means that a value is not JSON.
func differences(path string, stored, recomputed []byte) ([]Difference, error) {
	if bytes.Equal(stored, recomputed) {
		return nil, nil
	}
	a, err := decodeAny(stored)
	if err != nil {
		return nil, fmt.Errorf("stored %s: %w", path, err)
	}
	b, err := decodeAny(recomputed)
	if err != nil {
		return nil, fmt.Errorf("recomputed %s: %w", path, err)
	}
	var found []Difference
	compareValues(path, a, b, func(d Difference) { found = append(found, d) })
	if found == nil {
		found = []Difference{{path, "the same values", "with other spaces or another order"}}
	}
	return found, nil
}

func decodeAny(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func compareValues(path string, a, b any, differs func(Difference)) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			compareObjects(path, x, y, differs)
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				at := path + "[" + strconv.Itoa(i) + "]"
				switch {
				case i >= len(y):
					differs(Difference{at, show(x[i]), absent})
				case i >= len(x):
					differs(Difference{at, absent, show(y[i])})
				default:
					compareValues(at, x[i], y[i], differs)
				}
			}
			return
		}
	default:
		if a == b { // a is a scalar; comparing it with a slice or a map gives false and does not panic
			return
		}
	}
	differs(Difference{path, show(a), show(b)})
}

func compareObjects(path string, x, y map[string]any, differs func(Difference)) {
	names := maps.Clone(x)
	maps.Copy(names, y)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, inStored := x[name]
		b, inRecomputed := y[name]
		at := path + "." + name
		switch {
		case !inRecomputed:
			differs(Difference{at, show(a), absent})
		case !inStored:
			differs(Difference{at, absent, show(b)})
		default:
			compareValues(at, a, b, differs)
		}
	}
}

func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > maxValue {
		return fmt.Sprintf("%s… (%d bytes)", bytes.ToValidUTF8(b[:maxValue], nil), len(b))
	}
	return string(b)
}
