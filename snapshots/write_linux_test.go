package snapshots

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Root may change a private file of another user: that user can still read the new one.
func TestWritePrivateFileKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, who may give files away")
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "keys.json")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(path, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	if err := WritePrivateFile(dir, "keys.json", []byte("new")); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if stat := info.Sys().(*syscall.Stat_t); stat.Uid != nobody || stat.Gid != nobody {
		t.Errorf("the new file belongs to %d:%d", stat.Uid, stat.Gid)
	}
}
