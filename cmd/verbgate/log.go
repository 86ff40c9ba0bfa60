package main

import (
	"io"
	"log/slog"
)

// notices makes a logger on w for what an operator has to be told whatever the level.
func (c *config) notices(w io.Writer) *slog.Logger { return c.loggerAt(w, slog.LevelInfo) }

// logger makes the program's logger on w. quiet is for commands that end by themselves: unless a
// level is configured they only say what is wrong.
func (c *config) logger(w io.Writer, quiet bool) *slog.Logger {
	return c.loggerAt(w, c.logLevel(quiet))
}

func (c *config) loggerAt(w io.Writer, level slog.Level) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}

func (c *config) logLevel(quiet bool) slog.Level {
	switch c.Log.Level {
	case "debug":
		return slog.LevelDebug
	case "info":
		return slog.LevelInfo
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	if quiet {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}
