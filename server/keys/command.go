package keys

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// CreateCommand issues a key and prints its secret as the one line on stdout, and what it is on stderr.
func CreateCommand(stdout, stderr io.Writer, path string, spec Spec, now time.Time) error {
	secret, key, err := Create(path, spec, now)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(stdout, secret); err != nil {
		// Nobody has seen it, so nobody may have it.
		if _, gone := Revoke(path, key.ID, now); gone != nil {
			return fmt.Errorf("print the secret of %s: %w; it could not be revoked either: %w", key.ID, err, gone)
		}
		return fmt.Errorf("print the secret of %s, which is now revoked: %w", key.ID, err)
	}
	_, err = fmt.Fprintf(stderr, "created %s %q (%s); the line above is its secret, which is shown this once and stored nowhere\n",
		key.ID, key.Name, terms(key))
	return err
}

// terms says in words what a key allows.
func terms(k Key) string {
	return fmt.Sprintf("a minute: %s, a day: %s, expires: %s", unlimited(int64(k.PerMinute)), unlimited(k.PerDay), orNever(k.Expires))
}

// ListCommand prints the keys as a table, or as JSON without digests: an array of objects with the members id, name,
// created, expires, per_minute, per_day (0: unlimited), revoked and state.
func ListCommand(stdout io.Writer, path string, asJSON bool, now time.Time) error {
	keys, err := List(path)
	if err != nil {
		return err
	}
	if asJSON {
		return listJSON(stdout, keys, now)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tCREATED\tEXPIRES\tPER MINUTE\tPER DAY\tSTATE")
	for _, k := range keys {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Created.Format(time.RFC3339), orNever(k.Expires),
			unlimited(int64(k.PerMinute)), unlimited(k.PerDay), k.State(now))
	}
	return w.Flush()
}

func listJSON(stdout io.Writer, keys []Key, now time.Time) error {
	type row struct {
		ID        string    `json:"id"`
		Name      string    `json:"name"`
		Created   time.Time `json:"created"`
		Expires   time.Time `json:"expires,omitzero"`
		PerMinute int       `json:"per_minute"`
		PerDay    int64     `json:"per_day"`
		Revoked   time.Time `json:"revoked,omitzero"`
		State     string    `json:"state"`
	}
	rows := make([]row, 0, len(keys))
	for _, k := range keys {
		rows = append(rows, row{k.ID, k.Name, k.Created, k.Expires, k.PerMinute, k.PerDay, k.Revoked, k.State(now)})
	}
	enc := json.NewEncoder(stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(rows)
}

// RevokeCommand revokes a key by its id or name and prints what it revoked. A running server follows within a
// second or two.
func RevokeCommand(stdout io.Writer, path, idOrName string, now time.Time) error {
	key, err := Revoke(path, idOrName, now)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "revoked %s %q (%s)\n", key.ID, key.Name, terms(key))
	return err
}

func unlimited(n int64) string {
	if n == 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func orNever(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Format(time.RFC3339)
}
