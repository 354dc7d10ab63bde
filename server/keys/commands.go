package keys

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"
)

// Streams has the writers to which a command prints.
type Streams struct{ Out, Err io.Writer }

// Commands is `strikecache keys`, in the form that the kong parser reads.
type Commands struct {
	Create createCommand `cmd:"" help:"Create a key and print its secret. The secret is shown once and stored nowhere."`
	List   listCommand   `cmd:"" help:"List the keys, with the requests of this UTC day and the last use. A server saves both once a minute."`
	Revoke revokeCommand `cmd:"" help:"Revoke a key. A running server refuses the key within two seconds."`

	DataDir string `help:"Directory of the stored files." default:"./data" type:"path"`
}

// File returns the path of the key file in a data directory.
func File(dataDir string) string { return filepath.Join(dataDir, "keys.json") }

type createCommand struct {
	Name      string        `arg:"" help:"Name of the key, such as the name of its user. 1 to 64 characters."`
	PerMinute int           `help:"Requests a minute, at most 1000000. 0: no limit." default:"0"`
	PerDay    int64         `help:"Requests a UTC day, at most 1000000000. 0: no limit." default:"0"`
	ExpiresIn time.Duration `help:"How long the key is valid, such as 2160h. 0: for ever." default:"0"`
}

// Run creates a key. It prints the secret as the only line on Out, and the terms of the key and its key file on Err: a server with
// another data directory does not know the key.
func (c createCommand) Run(all *Commands, to Streams) error {
	now := time.Now()
	spec := Key{Name: c.Name, PerMinute: c.PerMinute, PerDay: c.PerDay}
	if c.ExpiresIn != 0 {
		spec.Expires = now.Add(c.ExpiresIn)
	}
	secret, key, err := Create(File(all.DataDir), spec, now)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(to.Out, secret); err != nil {
		return fmt.Errorf("print the secret of %s: %w; revoke that key and create another one", key.ID, err)
	}
	_, err = fmt.Fprintf(to.Err, "created %s %q (%s) in %s; the line above is its secret, which is shown once and stored nowhere\n",
		key.ID, key.Name, terms(key), File(all.DataDir))
	return err
}

type listCommand struct{}

// Run prints the keys as a table.
func (listCommand) Run(all *Commands, to Streams) error {
	now := time.Now()
	keys, err := List(File(all.DataDir))
	if err != nil {
		return err
	}
	today, last := map[string]int64{}, map[string]int64{}
	paths, _ := fs.Glob(os.DirFS(all.DataDir), "*/usage.json") // of each source; the pattern is valid
	for _, path := range paths {
		s, err := readCounts(filepath.Join(all.DataDir, path), now.UTC())
		if err != nil {
			fmt.Fprintf(to.Err, "usage not known of %s: %v\n", filepath.Dir(path), err)
		}
		for id, n := range s.Requests {
			today[id] += n
		}
		for id, seconds := range s.LastUse {
			last[id] = max(last[id], seconds)
		}
	}
	w := tabwriter.NewWriter(to.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tCREATED\tEXPIRES\tPER MINUTE\tPER DAY\tTODAY\tLAST USE\tSTATE")
	for _, k := range keys {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", k.ID, k.Name, k.Created.Format(time.RFC3339), orNever(k.Expires),
			orUnlimited(int64(k.PerMinute)), orUnlimited(k.PerDay), today[k.ID], orNever(time.Unix(last[k.ID], 0).UTC()), k.State(now))
	}
	return w.Flush()
}

type revokeCommand struct {
	Key string `arg:"" help:"The key's id or name."`
}

// Run revokes a key and prints its terms.
func (c revokeCommand) Run(all *Commands, to Streams) error {
	key, err := Revoke(File(all.DataDir), c.Key, time.Now())
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(to.Out, "revoked %s %q (%s)\n", key.ID, key.Name, terms(key))
	return err
}

func terms(k Key) string {
	return fmt.Sprintf("a minute: %s, a day: %s, expires: %s", orUnlimited(int64(k.PerMinute)), orUnlimited(k.PerDay), orNever(k.Expires))
}

func orUnlimited(n int64) string {
	if n == 0 {
		return "unlimited"
	}
	return strconv.FormatInt(n, 10)
}

func orNever(t time.Time) string {
	if t.Unix() <= 0 {
		return "never"
	}
	return t.Format(time.RFC3339)
}
