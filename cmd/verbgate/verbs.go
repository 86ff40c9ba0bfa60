package main

import (
	"fmt"
	"log/slog"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/dispatcher"
	"github.com/verbgate/verbgate/packs"
)

func (c *cli) verbsCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verbs",
		Short: "List the verbs of the packs",
		Long: `List the public verbs of the packs. With --json they come with their signatures. A verb explains
itself, with all its params: verbgate request 'get(help=true)'.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := c.configuration()
			if err != nil {
				return err
			}
			verbs, err := catalogue(cfg, cfg.logger(c.stderr, true))
			if err != nil {
				return err
			}
			if asJSON {
				return c.printJSON(verbs)
			}
			return c.printVerbs(verbs)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return cmd
}

// catalogue lists the public verbs. It checks the packs as every start does, and opens nothing: no
// policy is activated and no data folder is touched.
func catalogue(cfg *config, log *slog.Logger) ([]packs.Listing, error) {
	gate, err := newGate(cfg, nil, log)
	if err != nil {
		return nil, &startError{err}
	}
	d, err := dispatcher.New(dispatcher.Config{Packs: cfg.packs(), Gate: gate, Checks: checks{}, BackendOf: cfg.Backends, Log: log})
	if err != nil {
		return nil, &startError{err}
	}
	return d.Catalogue(), nil
}

func (c *cli) printVerbs(verbs []packs.Listing) error {
	w := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "VERB\tPACK\tCATEGORY\tDESCRIPTION")
	for _, v := range verbs {
		description := firstSentence(v.Description)
		if c.terminal() {
			description = harmless(description)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.Verb, v.Pack, v.Category, description)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// firstSentence keeps a table a table.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	text, _, _ = strings.Cut(text, ". ")
	text, _, _ = strings.Cut(text, ": ")
	return strings.TrimSuffix(text, ".")
}
