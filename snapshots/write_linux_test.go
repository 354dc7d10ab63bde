package snapshots

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// nobody is a user who is not root.
const nobody = 65534

// Root may change a private file of another user: that user can still read the new one.
func TestWritePrivateFileKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may give files away")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	must(t, os.WriteFile(path, []byte("old"), 0o600))
	must(t, os.Chown(path, nobody, nobody))
	must(t, WritePrivateFile(dir, "keys.json", []byte("new")))
	info, err := os.Stat(path)
	must(t, err)
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != nobody || stat.Gid != nobody {
		t.Errorf("the new file belongs to %d:%d", stat.Uid, stat.Gid)
	}
}
