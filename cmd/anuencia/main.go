// Command anuencia is the governed harness: the server and the command line of
// those who run it, write its policies and check its evidence.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anuencia-harness/anuencia/internal/config"
)

// version is set when the program is built.
var version = "dev" // the linker sets it

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(out)
	root.SetErr(errOut)
	if err := root.ExecuteContext(ctx); err != nil {
		if _, werr := fmt.Fprintln(errOut, "anuencia:", err); werr != nil {
			return 2
		}
		return 1
	}
	return 0
}

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "anuencia",
		Short: "A governed harness: nothing risky runs without someone's consent",
		Long: "Anuencia stands between the people and automations that ask for work and the agents and tools that do it.\n" +
			"It decides by policy, waits for a person where the risk is high, runs exactly what was approved, and keeps evidence.",
		SilenceUsage: true, SilenceErrors: true, Version: version,
	}
	root.AddCommand(serveCommand(), migrateCommand(), configCommand(), policyCommand(), auditCommand(), tokenCommand(), holdCommand())
	return root
}

// settingFlags are the flags of every command that reads the settings. A flag
// counts only when it was given.
func settingFlags(cmd *cobra.Command, names ...string) {
	usage := map[string]string{
		"listen": "host:port to listen on (default 127.0.0.1:8080)", "data": "folder of the data (default anuencia-data; demo-data with --demo)",
		"policies": "folder of Rego policies (default: the embedded ones)", "catalog": "folder of the catalog (default: the embedded demo)",
	}
	switches := map[string]string{
		"demo": "serve the demo institution, on loopback only", "migrate": "bring the schema up to date before serving",
	}
	cmd.Flags().String("config", "", "YAML file of settings")
	for _, n := range names {
		if text, ok := switches[n]; ok {
			cmd.Flags().Bool(n, false, text)
			continue
		}
		cmd.Flags().String(n, "", usage[n])
	}
}

// loadConfig reads the settings of a command.
func loadConfig(cmd *cobra.Command) (config.Config, error) {
	flags := map[string]string{}
	file := ""
	known := map[string]bool{"listen": true, "data": true, "policies": true, "catalog": true, "demo": true, "migrate": true}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "config" {
			file = f.Value.String()
		} else if known[f.Name] {
			flags[f.Name] = f.Value.String()
		}
	})
	c, err := config.Load(file, os.Environ(), flags)
	if err != nil {
		return c, fmt.Errorf("the settings are wrong:\n%w", err)
	}
	if c.Demo && c.Data == config.Defaults().Data {
		c.Data = "demo-data"
	}
	return c, nil
}

func configCommand() *cobra.Command {
	check := &cobra.Command{
		Use: "check", Short: "check the settings, and name every problem", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err == nil {
				err = c.CheckServe()
			}
			if err != nil {
				return err
			}
			return printf(cmd, "the settings are sound\n")
		},
	}
	settingFlags(check, "listen", "data", "policies", "catalog", "demo", "migrate")
	cmd := &cobra.Command{Use: "config", Short: "the settings"}
	cmd.AddCommand(check)
	return cmd
}

func printf(cmd *cobra.Command, format string, args ...any) error {
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), format, args...); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}

// errNotSound is what a check gives that found something; it was printed.
var errNotSound = errors.New("not sound")
