// Package vet copies gates, which go vet must object to: each line marked below, and no other.
package vet

import "github.com/verbgate/verbgate/wire"

type server struct{ gate wire.ServerGate }

func copies(a *wire.ServerGate, b *wire.ClientGate, s *server) {
	c := *a // copies
	_ = &c
	d := *b // copies
	_ = &d
	e := *s // copies
	_ = &e
	moved := a
	_ = moved
}

var _ = copies
