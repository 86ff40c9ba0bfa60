//go:build !linux && !darwin

package opa

import "os"

// changeTime is 0: elsewhere the other marks of a file must do.
func changeTime(os.FileInfo) int64 { return 0 }
