package process

import (
	"io"
	"log/slog"
)

// Log says what is logged and how.
type Log struct {
	Format string `name:"log-format" help:"Format of the log: ${enum}." enum:"text,json" default:"text" group:"Log"`
	Level  string `name:"log-level" help:"Least level logged: ${enum}." enum:"debug,info,warn,error" default:"info" group:"Log"`
}

// New returns a logger.
func (l Log) New(w io.Writer) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.Level)); err != nil {
		level = slog.LevelInfo // the parser allows no other
	}
	options := &slog.HandlerOptions{Level: level}
	if l.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
