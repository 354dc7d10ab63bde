// Command bench loads HTTP servers and reports what their clients would see.
//
//	go run ./bench URL      requests at a fixed rate or in a closed loop against any running server: percentiles, time line, CPU
//	go run ./bench rivals   on Linux: compares strikecache with other servers
//
// It imports no package of strikecache, and uses only its URLs, as any client does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/invopop/jsonschema"
)

type commands struct {
	Load   loadCommand   `cmd:"" default:"withargs" help:"Load a running server at a fixed rate or in a closed loop (the default command)."`
	Schema schemaCommand `cmd:"" help:"Print the JSON Schema of the file that --json of load writes."`
	linuxCommands
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "bench:", err)
	var usage *kong.ParseError
	switch {
	case errors.As(err, &usage):
		os.Exit(2)
	case errors.Is(err, errInconclusive):
		os.Exit(3)
	}
	os.Exit(1)
}

// run parses the arguments and runs the command. A wrong argument is a [kong.ParseError].
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	helped := false
	if len(args) == 0 || args[0] == "--help" || args[0] == "-h" {
		args = append([]string{"load"}, args...) // the help of load also names the other command
	}
	all := &commands{}
	parser, err := kong.New(all, kong.Name("bench"), kong.Writers(stdout, stderr), kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{WrapUpperBound: 120}), kong.Exit(func(int) { helped = true }))
	if err != nil {
		return err
	}
	selected, err := parser.Parse(args)
	if helped || err != nil {
		return err
	}
	all.Load.terminal = terminal(stderr)
	selected.BindTo(ctx, (*context.Context)(nil))
	selected.BindTo(stdout, (*io.Writer)(nil))
	return selected.Run()
}

// terminal returns w if it is a terminal, and else nil.
func terminal(w io.Writer) io.Writer {
	if file, ok := w.(*os.File); ok {
		if about, err := file.Stat(); err == nil && about.Mode()&os.ModeCharDevice != 0 {
			return w
		}
	}
	return nil
}

// printHelp puts what the program does before kong's help.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	fmt.Fprintln(ctx.Stdout, "Loads a URL at a fixed rate without coordinated omission, or in a closed loop. \"go run ./bench\" runs it, \"go install ./bench\" installs it as \"bench\".")
	return kong.DefaultHelpPrinter(options, ctx)
}

// schemaCommand describes the report of load.
type schemaCommand struct{}

// Run prints the schema.
func (schemaCommand) Run(stdout io.Writer) error {
	text, err := json.MarshalIndent((&jsonschema.Reflector{Anonymous: true}).Reflect(&report{}), "", "  ")
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s\n", text)
	}
	return err
}
