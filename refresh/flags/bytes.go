package flags

import (
	"fmt"
	"log/slog"
	"strconv"
	"strings"

	"strikecache/refresh"
	"strikecache/refresh/archive"
)

// Bytes is a number of bytes on the command line: 1000000, 500MB, 5GiB.
type Bytes int64

// minArchive is the least that holds the inputs of one day: 2 MB for the SPX chain, 0.3 MB for each other one.
const minArchive Bytes = 64 << 20

// UnmarshalText is called by the parser.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for suffix, n := range map[string]int64{
		"KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	} {
		if rest, ok := strings.CutSuffix(string(text), suffix); ok {
			number, unit = rest, n
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > 1<<62/unit {
		return fmt.Errorf("%.40q is no number of bytes, such as 1000000, 500MB or 5GiB", text)
	}
	*b = Bytes(n * unit)
	return nil
}

// MarshalText is the inverse of UnmarshalText.
func (b Bytes) MarshalText() ([]byte, error) { return strconv.AppendInt(nil, int64(b), 10), nil }

// OpenArchive opens the archive of a source, whose directory cfg's store owns; none when it may hold nothing.
func (s *Schedule) OpenArchive(cfg *refresh.Config, dataDir, source string, log *slog.Logger) (err error) {
	if s.ArchiveMaxBytes > 0 {
		cfg.Inputs, err = archive.Open(archive.Dir(dataDir, source), int64(s.ArchiveMaxBytes), log)
	}
	return err
}
