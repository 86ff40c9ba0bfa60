package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/policytests"
)

// Names of what verbgate init writes.
const (
	configName = "verbgate.yaml"
	policyName = "policy"
)

func (c *cli) initCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "init DIR",
		Short: "Write a configuration and a policy to start from",
		Long: `Write verbgate.yaml, with every key, its meaning and its default, and the folder policy with the
starter policy and its tests, into the folder DIR. Files that are there already are never replaced:
then nothing is written at all.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := args[0]
			if err := initialise(dir); err != nil {
				return &startError{fmt.Errorf("init: %w", err)}
			}
			_, err := fmt.Fprintf(c.stdout, "%s\n%s\n", filepath.Join(dir, configName), filepath.Join(dir, policyName))
			return err
		},
	}
}

// initialise writes both or nothing. They are prepared beside their places and moved there, the
// configuration last: a folder that holds one is complete.
func initialise(dir string) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range []string{configName, policyName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(err, fmt.Errorf("%s is there already and is left as it is; choose another folder, or move it away", filepath.Join(dir, name)))
		}
	}
	work, err := os.MkdirTemp(dir, ".verbgate-init-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := writeStarter(filepath.Join(work, policyName)); err != nil {
		return err
	}
	if err := writeFile(filepath.Join(work, configName), []byte(defaults().document())); err != nil {
		return err
	}
	// A folder cannot be moved over one that holds something, and a link cannot replace a file.
	if err := os.Rename(filepath.Join(work, policyName), filepath.Join(dir, policyName)); err != nil {
		return err
	}
	if err := os.Link(filepath.Join(work, configName), filepath.Join(dir, configName)); err != nil {
		return errors.Join(err, os.RemoveAll(filepath.Join(dir, policyName)))
	}
	return nil
}

func writeStarter(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	starter, err := fs.Sub(policytests.Starter, "starter")
	if err != nil {
		return err
	}
	return fs.WalkDir(starter, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(starter, name)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(dir, filepath.FromSlash(path.Clean(name))), text)
	})
}

func writeFile(name string, text []byte) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// documentHead opens verbgate.yaml.
const documentHead = `# The configuration of Verbgate. Every key is here, with its default, but for gate.policy, which
# names the policy beside this file.
#
#   verbgate --config verbgate.yaml serve --stdio
#
# Each key may also be set by a variable, gate.timeout by VERBGATE_GATE_TIMEOUT (the items of a list
# separated by commas, the pairs of a table as pack=backend, anything else as it stands here), and by a flag, --set gate.timeout=1s.
# A flag beats a variable, a variable this file, and this file the default. A variable that is empty
# is not set; VERBGATE_GATE_POLICY and VERBGATE_CONFIG may not be empty. Relative paths in this file
# start from its folder, and ~/ is your home folder. An unknown key or variable is refused.
`

// document is the configuration as a YAML text in which every key explains itself.
func (c *config) document() string {
	c.Gate.Policy = policyName
	var b strings.Builder
	b.WriteString(documentHead)
	var sections []string // those that are open
	for _, s := range c.settings() {
		path := strings.Split(s.key, ".")
		parents, name := path[:len(path)-1], path[len(path)-1]
		if len(parents) == 0 {
			b.WriteByte('\n')
		}
		for i, parent := range parents {
			if i < len(sections) && sections[i] == parent {
				continue
			}
			sections = sections[:min(i, len(sections))]
			if i == 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), parent)
		}
		sections = parents
		indent := strings.Repeat("  ", len(parents))
		for line := range strings.SplitSeq(s.doc, "\n") {
			fmt.Fprintf(&b, "%s# %s\n", indent, line)
		}
		fmt.Fprintf(&b, "%s%s: %s\n", indent, name, s.text())
	}
	return b.String()
}

// text is the setting's value as YAML.
func (s setting) text() string {
	switch into := s.into.(type) {
	case special:
		return into.text()
	case *string:
		if *into == "" {
			return `""`
		}
		return *into
	case *time.Duration:
		return shortDuration(*into)
	case *[]string:
		return "[" + strings.Join(*into, ", ") + "]"
	case *map[string]string:
		var pairs []string
		for name, value := range *into {
			pairs = append(pairs, name+": "+value)
		}
		slices.Sort(pairs)
		return "{" + strings.Join(pairs, ", ") + "}"
	}
	return ""
}

// shortDuration is d without the zeros that time.Duration prints: 1m, not 1m0s.
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
