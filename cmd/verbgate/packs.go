package main

// The packs this program is built with; they register themselves.
import (
	_ "github.com/verbgate/verbgate/packs/core"
	_ "github.com/verbgate/verbgate/packs/kg"
	_ "github.com/verbgate/verbgate/packs/memory"
)
