package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/verbgate/verbgate/dispatcher/request"
)

// Exit codes, as the help text documents them.
const (
	exitOK     = 0 // all operations succeeded
	exitFailed = 1 // something failed: an operation, or writing the answer
	exitBad    = 2 // the request or the command line is wrong; nothing has run
	exitStart  = 3 // could not start: configuration, policy, data folder, server
)

// errOperations says that the envelope, which has been written, holds a failure.
var errOperations = errors.New("not every operation succeeded")

// usageError is a command line that makes no sense.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// startError is a reason not to start: nothing has been listened to and no operation has run.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// exitCode is the one place where errors become exit codes.
func exitCode(err error) int {
	var (
		usage *usageError
		parse *request.Error
		start *startError
	)
	switch {
	case err == nil:
		return exitOK
	case errors.As(err, &usage), errors.As(err, &parse):
		return exitBad
	case errors.As(err, &start):
		return exitStart
	default:
		return exitFailed
	}
}

// cli is what every command needs: the streams, and the flags that belong to no single command.
type cli struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	environ        []string
	flags          globalFlags
}

// run is the whole program but for the process: it returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	c := &cli{stdin: stdin, stdout: stdout, stderr: stderr, environ: os.Environ()}
	began := false
	root := c.command()
	root.PersistentPreRun = func(*cobra.Command, []string) { began = true }
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err != nil && !began {
		// cobra's own refusals: an unknown command or flag, a missing argument.
		err = &usageError{err}
	}
	c.report(err)
	return exitCode(err)
}

// report tells a person what went wrong, on stderr.
func (c *cli) report(err error) {
	var (
		parse *request.Error
		usage *usageError
	)
	var text string
	switch {
	case err == nil, errors.Is(err, errOperations): // the envelope has said it
		return
	case errors.As(err, &parse):
		text = strings.TrimRight(parse.Caret(), "\n")
	case errors.As(err, &usage):
		text = fmt.Sprintf("verbgate: %v\nRun \"verbgate --help\" for the commands, \"verbgate COMMAND --help\" for one of them.", err)
	default:
		text = fmt.Sprintf("verbgate: %v", err)
	}
	if isTerminal(c.stderr) { // it may quote what a caller or a server wrote
		text = harmless(text)
	}
	fmt.Fprintln(c.stderr, text)
}

// command is the tree of commands.
func (c *cli) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "verbgate",
		Short: "One tool for agents, every call judged by your policy",
		Long: `Verbgate runs requests: verb calls that are parsed, checked, judged by a policy,
run by a pack, audited, and answered in one envelope.

Exit codes: 0 all operations succeeded; 1 something failed; 2 the request or the
command line is wrong, and nothing has run; 3 could not start.`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetIn(c.stdin)
	root.SetOut(c.stdout)
	root.SetErr(c.stderr)
	c.flags.register(root.PersistentFlags())
	root.AddCommand(
		c.serveCommand(),
		c.requestCommand(),
		c.verbsCommand(),
		c.initCommand(),
		c.parseCommand(),
		c.watchCommand(),
		c.frameCommand(),
		c.versionCommand(),
	)
	return root
}
