package display

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Finding names a text of a value that holds deceiving characters.
type Finding struct {
	Path  string // JSON pointer, with the keys as shown
	Kinds []Kind
	Shown string
}

// Value gives a JSON value with every text of it, keys too, as Text shows them,
// and where something was found, by path. Numbers keep their digits. An error
// means that raw is no JSON.
func Value(raw string) (shown any, found []Finding, err error) {
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, nil, fmt.Errorf("decode for display: %w", err)
	}
	w := walker{}
	shown = w.show(v, "")
	return shown, w.found, nil
}

type walker struct{ found []Finding }

func (w *walker) show(v any, path string) any {
	switch v := v.(type) {
	case string:
		return w.text(v, path)
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = w.show(item, path+"/"+strconv.Itoa(i))
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			name, kinds := Text(key)
			for _, taken := out[name]; taken; _, taken = out[name] {
				name += "[2]" // two keys that look the same stay two
			}
			here := path + "/" + pointer(name)
			if kinds != nil {
				w.found = append(w.found, Finding{Path: here, Kinds: kinds, Shown: name})
			}
			out[name] = w.show(v[key], here)
		}
		return out
	}
	return v
}

func (w *walker) text(s, path string) string {
	shown, kinds := Text(s)
	if kinds != nil {
		w.found = append(w.found, Finding{Path: path, Kinds: kinds, Shown: shown})
	}
	return shown
}

// pointer escapes one token of a JSON pointer.
func pointer(key string) string {
	return strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
}
