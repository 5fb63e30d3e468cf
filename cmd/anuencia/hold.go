package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func holdCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "hold", Short: "the brake: stop an intent, or all, at once"}
	cmd.AddCommand(holdAddCommand(), holdLiftCommand(), holdListCommand())
	return cmd
}

// asPerson is a request of somebody at the machine: who they are stands in the
// directory, and on the record.
func asPerson(person string) (harness.Request, error) {
	channel, id, found := strings.Cut(person, ":")
	if !found {
		return harness.Request{}, errors.New("--as: channel:external_id of the person who acts is expected")
	}
	h := anuencia.Handle{Channel: anuencia.Channel(channel), ExternalID: id}
	return harness.Request{Channel: anuencia.ChannelCLI, Principal: anuencia.Principal{Name: "cli", Person: h}}, nil
}

func holdAddCommand() *cobra.Command {
	var intent, reason, as string
	var all bool
	cmd := &cobra.Command{
		Use: "add", Short: "place a hold: nothing of it is taken in, started or resumed", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if all == (intent != "") {
				return errors.New("one of --intent and --all is needed")
			}
			r, err := asPerson(as)
			if err != nil {
				return err
			}
			return withApp(cmd, func(a *app) error {
				h, err := a.service.PlaceHold(cmd.Context(), r, intent, reason)
				if err != nil {
					return fmt.Errorf("place a hold: %w", err)
				}
				return printf(cmd, "hold_id %s\n", h.ID)
			})
		},
	}
	settingFlags(cmd, "data", "catalog", "policies", "demo")
	cmd.Flags().StringVar(&intent, "intent", "", "the intent to stop")
	cmd.Flags().BoolVar(&all, "all", false, "stop every intent")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&as, "as", "", "channel:external_id of the person who acts")
	return cmd
}

func holdLiftCommand() *cobra.Command {
	var reason, as string
	cmd := &cobra.Command{
		Use: "lift HOLD_ID", Short: "lift a hold that another person placed", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := anuencia.ParseID[anuencia.HoldID](args[0])
			if err != nil {
				return fmt.Errorf("hold id: %w", err)
			}
			r, err := asPerson(as)
			if err != nil {
				return err
			}
			return withApp(cmd, func(a *app) error {
				if _, err := a.service.LiftHold(cmd.Context(), r, id, reason); err != nil {
					return fmt.Errorf("lift the hold: %w", err)
				}
				return printf(cmd, "lifted\n")
			})
		},
	}
	settingFlags(cmd, "data", "catalog", "policies", "demo")
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	cmd.Flags().StringVar(&as, "as", "", "channel:external_id of the person who acts")
	return cmd
}

func holdListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list the holds in force", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, func(a *app) error {
				list, err := a.store.ActiveHolds(cmd.Context())
				if err != nil {
					return fmt.Errorf("list holds: %w", err)
				}
				for _, h := range list {
					intent := h.Intent
					if intent == "" {
						intent = "(all)"
					}
					if err := printf(cmd, "%s  %s  %s  %s: %s\n", h.ID, intent, h.PlacedAt.Format("2006-01-02T15:04:05Z07:00"), h.PlacedByName, h.Reason); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	settingFlags(cmd, "data", "catalog", "policies", "demo")
	return cmd
}
