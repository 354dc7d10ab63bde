package keys

import (
	"io"
	"path/filepath"
	"time"
)

// Streams are where a command prints.
type Streams struct{ Out, Err io.Writer }

// Commands is `strikecache keys`, in the form that the kong parser reads.
type Commands struct {
	Create createCommand `cmd:"" help:"Create a key and print its secret, which is shown once and stored nowhere."`
	List   listCommand   `cmd:"" help:"List the keys."`
	Revoke revokeCommand `cmd:"" help:"Revoke a key; a running server follows within seconds."`

	KeysFile string `help:"File of API keys; by default keys.json in --data-dir." type:"path" placeholder:"FILE"`
	DataDir  string `help:"Directory for snapshots." default:"./data" type:"path"`
}

// File returns the path of the key file: the one given, or keys.json in the data directory.
func File(file, dataDir string) string {
	if file == "" {
		return filepath.Join(dataDir, "keys.json")
	}
	return file
}

func (c *Commands) file() string { return File(c.KeysFile, c.DataDir) }

type createCommand struct {
	Name      string        `arg:"" help:"What or whom the key is for, 1 to 64 characters."`
	PerMinute int           `help:"Requests a minute, at most 1000000; 0 for no limit." default:"0"`
	PerDay    int64         `help:"Requests a UTC day, at most 1000000000; 0 for no limit." default:"0"`
	ExpiresIn time.Duration `help:"How long the key is good, such as 2160h; 0 for ever." default:"0"`
}

// Run is called by the parser.
func (c createCommand) Run(all *Commands, to Streams) error {
	spec, now := Spec{Name: c.Name, PerMinute: c.PerMinute, PerDay: c.PerDay}, time.Now()
	if c.ExpiresIn != 0 {
		spec.Expires = now.Add(c.ExpiresIn)
	}
	return CreateCommand(to.Out, to.Err, all.file(), spec, now)
}

type listCommand struct {
	JSON bool `name:"json" help:"As JSON."`
}

// Run is called by the parser.
func (c listCommand) Run(all *Commands, to Streams) error {
	return ListCommand(to.Out, all.file(), c.JSON, time.Now())
}

type revokeCommand struct {
	Key string `arg:"" help:"The key's id or name."`
}

// Run is called by the parser.
func (c revokeCommand) Run(all *Commands, to Streams) error {
	return RevokeCommand(to.Out, all.file(), c.Key, time.Now())
}
