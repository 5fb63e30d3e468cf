package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anuencia-harness/anuencia/adapters/sqlstore"
	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/audit"
)

func auditCommand() *cobra.Command {
	verify := &cobra.Command{
		Use: "verify", Short: "walk all hash chains and name the first bad row", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := loadConfig(cmd)
			if err != nil {
				return err
			}
			s, err := openStore(cmd.Context(), c, nil)
			if err != nil {
				return err
			}
			return errors.Join(verifyAll(cmd, s), s.Close())
		},
	}
	settingFlags(verify, "data")
	cmd := &cobra.Command{Use: "audit", Short: "check the evidence"}
	cmd.AddCommand(verify)
	return cmd
}

const verifyBatch = 500

// verifyAll walks the chains, and then asks every execution whether its chain is
// there to the end: a chain that was cut, or is gone, shows there.
func verifyAll(cmd *cobra.Command, s *sqlstore.Store) error {
	ctx := cmd.Context()
	chains, rows := 0, 0
	var after anuencia.StreamID
	for {
		ids, err := s.Streams(ctx, after, verifyBatch)
		if err != nil {
			return fmt.Errorf("list chains: %w", err)
		}
		for _, id := range ids {
			events, err := s.Stream(ctx, id)
			if err != nil {
				return fmt.Errorf("read chain %s: %w", id, err)
			}
			if err := audit.VerifyStream(id, events, nil, nil); err != nil {
				return defect(cmd, err)
			}
			chains, rows, after = chains+1, rows+len(events), id
		}
		if len(ids) < verifyBatch {
			break
		}
	}
	executions, err := verifyHeads(ctx, s)
	if err != nil {
		return defect(cmd, err)
	}
	return printf(cmd, "verified: %d chains, %d events, %d executions\nroll-back not checked: there is no checkpoint outside the database to compare with\n",
		chains, rows, executions)
}

func verifyHeads(ctx context.Context, s *sqlstore.Store) (int, error) {
	n := 0
	var after anuencia.ExecutionID
	for {
		heads, err := s.Heads(ctx, after, verifyBatch)
		if err != nil {
			return n, fmt.Errorf("list executions: %w", err)
		}
		for _, h := range heads {
			if err := verifyToItsEnd(ctx, s, h.ID, h.Head); err != nil {
				return n, err
			}
			n, after = n+1, h.ID
		}
		if len(heads) < verifyBatch {
			return n, nil
		}
	}
}

// growTries: a chain that grows while it is read is read again.
const growTries = 20

// verifyToItsEnd holds a chain against the end that its execution remembers. On a
// server at work the chain may have grown since the end was read.
func verifyToItsEnd(ctx context.Context, s *sqlstore.Store, id anuencia.ExecutionID, head anuencia.Head) error {
	for try := 0; ; try++ {
		events, err := s.Stream(ctx, anuencia.StreamOf(id))
		if err != nil {
			return fmt.Errorf("read chain %s: %w", id, err)
		}
		bad := audit.VerifyStream(anuencia.StreamOf(id), events, &head, nil)
		if bad == nil || try == growTries || int64(len(events)) <= head.Seq {
			return bad
		}
		e, err := s.Execution(ctx, id)
		if err != nil {
			return fmt.Errorf("read execution %s: %w", id, err)
		}
		if e.Head == head {
			return bad
		}
		head = e.Head
	}
}

func defect(cmd *cobra.Command, err error) error {
	d := new(audit.Defect)
	if !errors.As(err, &d) {
		return err
	}
	if perr := printf(cmd, "DOES NOT VERIFY: %v\n", d); perr != nil {
		return perr
	}
	return errNotSound
}
