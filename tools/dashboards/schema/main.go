// Command schema reads Grafana dashboards, strictly, with the types that Grafana generates from its own schema: unknown
// fields, wrong types and missing ones are errors.
//
//	schema FILE…
package main

import (
	"fmt"
	"os"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

func check(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	board := dashboard.NewDashboard()
	if err := board.UnmarshalJSONStrict(data); err != nil {
		return err
	}
	return board.Validate()
}

func main() {
	plugins.RegisterDefaultPlugins()
	failed := false
	for _, path := range os.Args[1:] {
		if err := check(path); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", path, err)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}
