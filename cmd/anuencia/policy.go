package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/anuencia-harness/anuencia/adapters/opa"
	"github.com/anuencia-harness/anuencia/policies"
)

func policyCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "policy", Short: "test and try the policies"}
	cmd.AddCommand(policyTestCommand(), policyEvalCommand())
	return cmd
}

func policyFS(dir string) fs.FS {
	if dir == "" {
		return policies.FS
	}
	return os.DirFS(dir)
}

func policyTestCommand() *cobra.Command {
	var dir string
	var least float64
	cmd := &cobra.Command{
		Use: "test", Short: "run the Rego tests, with their coverage", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := opa.Test(cmd.Context(), policyFS(dir))
			if err != nil {
				return fmt.Errorf("test policies: %w", err)
			}
			for _, f := range r.Failed {
				if err := printf(cmd, "FAIL %s\n", f); err != nil {
					return err
				}
			}
			for _, line := range r.NotCovered {
				if err := printf(cmd, "not covered: %s\n", line); err != nil {
					return err
				}
			}
			if err := printf(cmd, "%d passed, %d failed\ncoverage: %.1f %%\n", r.Passed, len(r.Failed), r.Coverage); err != nil {
				return err
			}
			if !r.OK() || r.Coverage < least {
				return errNotSound
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "policies", "", "folder of Rego policies (default: the embedded ones)")
	cmd.Flags().Float64Var(&least, "coverage", 0, "least coverage in per cent")
	return cmd
}

func policyEvalCommand() *cobra.Command {
	var dir, input string
	cmd := &cobra.Command{
		Use: "eval", Short: "print the decision for an input document (JSON)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			raw, err := readInput(cmd, input)
			if err != nil {
				return fmt.Errorf("input: %w", err)
			}
			out, err := opa.Eval(cmd.Context(), policyFS(dir), raw)
			if err != nil {
				return fmt.Errorf("evaluate: %w", err)
			}
			return printf(cmd, "%s\n", out)
		},
	}
	cmd.Flags().StringVar(&dir, "policies", "", "folder of Rego policies (default: the embedded ones)")
	cmd.Flags().StringVar(&input, "input", "-", "file of the input, - for standard input")
	return cmd
}

func readInput(cmd *cobra.Command, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(name) //nolint:gosec // the operator names the file
}
