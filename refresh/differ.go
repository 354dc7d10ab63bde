package refresh

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

const (
	absent = "absent" // stands for a value where there is no such field
	// maxValue is the most bytes of one value that are printed.
	maxValue = 200
)

// difference returns the line that `strikecache recompute` prints for a JSON path whose stored and recomputed values differ.
func difference(path, stored, recomputed string) string {
	return fmt.Sprintf("%s: stored %s, recomputed %s", path, stored, recomputed)
}

// differences compares two JSON values and returns a [difference] for each field that differs, sorted by field name and array
// index. Two numbers are equal only if their digits are: 1.0 and 1 differ. If the values differ only in spaces or in the order
// of fields, there is one difference, with the path of the whole value. An error means that a value is not JSON.
func differences(path string, stored, recomputed []byte) (found []string, err error) {
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
	compareValues(path, a, b, func(path, stored, recomputed string) { found = append(found, difference(path, stored, recomputed)) })
	if found == nil {
		found = []string{difference(path, "the same values", "with other spaces or another order")}
	}
	return found, nil
}

func decodeAny(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

func compareValues(path string, a, b any, differs func(path, stored, recomputed string)) {
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			names := maps.Clone(x)
			maps.Copy(names, y)
			for _, name := range slices.Sorted(maps.Keys(names)) {
				compareValues(path+"."+name, member(x, name), member(y, name), differs)
			}
			return
		}
	case []any:
		if y, ok := b.([]any); ok {
			for i := range max(len(x), len(y)) {
				compareValues(fmt.Sprintf("%s[%d]", path, i), element(x, i), element(y, i), differs)
			}
			return
		}
	default:
		if a == b { // a is a scalar; comparing it with a slice or a map gives false and does not panic
			return
		}
	}
	differs(path, show(a), show(b))
}

// none is the value of a field that is not there.
type none struct{}

func member(of map[string]any, name string) any {
	if v, ok := of[name]; ok {
		return v
	}
	return none{}
}

func element(of []any, i int) any {
	if i < len(of) {
		return of[i]
	}
	return none{}
}

func show(v any) string {
	if v == (none{}) {
		return absent
	}
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	if len(b) > maxValue {
		return fmt.Sprintf("%s… (%d bytes)", bytes.ToValidUTF8(b[:maxValue], nil), len(b))
	}
	return string(b)
}
