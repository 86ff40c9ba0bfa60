package opa

import (
	"os"
	"syscall"
)

// changeTime is when a file was last changed in any way, its mode and owner included. No program can set
// it. 0 means that the system does not say.
func changeTime(info os.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ctimespec.Nano()
	}
	return 0
}
