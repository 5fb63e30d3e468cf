package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

func tokenCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "token", Short: "make, list and revoke credentials, with access to the database"}
	cmd.AddCommand(tokenCreateCommand(), tokenListCommand(), tokenRevokeCommand())
	return cmd
}

// withApp runs f over the whole application, not serving.
func withApp(cmd *cobra.Command, f func(a *app) error) error {
	c, err := loadConfig(cmd)
	if err != nil {
		return err
	}
	a, err := newApp(cmd.Context(), c, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	return errors.Join(f(a), a.close())
}

func tokenCreateCommand() *cobra.Command {
	var n harness.NewToken
	var scopes, channels, person string
	cmd := &cobra.Command{
		Use: "create", Short: "make a credential and print its secret, once", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for s := range strings.SplitSeq(scopes, ",") {
				n.Scopes = append(n.Scopes, anuencia.Scope(strings.TrimSpace(s)))
			}
			for ch := range strings.SplitSeq(channels, ",") {
				n.Channels = append(n.Channels, anuencia.Channel(strings.TrimSpace(ch)))
			}
			if person != "" {
				channel, id, found := strings.Cut(person, ":")
				if !found {
					return errors.New("--person: channel:external_id is expected")
				}
				n.Person = anuencia.Handle{Channel: anuencia.Channel(channel), ExternalID: id}
			}
			return withApp(cmd, func(a *app) error {
				secret, t, err := a.service.CreateTokenOnHost(cmd.Context(), n)
				if err != nil {
					return tokenProblem(err)
				}
				return printf(cmd, "token_id %s\ntoken    %s\n", t.ID, secret)
			})
		},
	}
	settingFlags(cmd, "data", "catalog", "policies", "demo")
	cmd.Flags().StringVar(&n.Name, "name", "", "name of the principal")
	cmd.Flags().StringVar(&scopes, "scopes", "", "comma list of submit, decide, audit, policy, admin, operate")
	cmd.Flags().StringVar(&channels, "channels", "api", "comma list of ui, api, n8n, telegram, uhp, mcp")
	cmd.Flags().StringVar(&person, "person", "", "channel:external_id of the person it belongs to")
	cmd.Flags().StringSliceVar(&n.ActFor, "act-for", nil, "roles of the people it may act for")
	cmd.Flags().DurationVar(&n.ExpiresIn, "expires-in", 0, "life, such as 720h; none when 0")
	return cmd
}

// tokenProblem tells an operator at the machine what is wrong.
func tokenProblem(err error) error {
	f := anuencia.AsFault(err)
	if len(f.Details.Fields) == 0 {
		return err
	}
	parts := make([]string, len(f.Details.Fields))
	for i, fe := range f.Details.Fields {
		parts[i] = strings.TrimPrefix(fe.Path, "/") + " (" + fe.Rule + ")"
	}
	return fmt.Errorf("not a credential that can be made: %s", strings.Join(parts, ", "))
}

func tokenListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "list", Short: "list credentials, never their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withApp(cmd, func(a *app) error {
				page := harness.Page{Limit: 200}
				for {
					list, err := a.store.Tokens(cmd.Context(), page)
					if err != nil {
						return fmt.Errorf("list tokens: %w", err)
					}
					for _, t := range list {
						if err := printToken(cmd, t); err != nil {
							return err
						}
						page.Before = t.ID.String()
					}
					if len(list) < page.Limit {
						return nil
					}
				}
			})
		},
	}
	settingFlags(cmd, "data", "catalog", "policies", "demo")
	return cmd
}

func printToken(cmd *cobra.Command, t anuencia.Token) error {
	state := "usable"
	if !t.RevokedAt.IsZero() {
		state = "revoked " + t.RevokedAt.Format(time.RFC3339)
	} else if !t.Usable(time.Now()) {
		state = "expired " + t.Principal.ExpiresAt.Format(time.RFC3339)
	}
	return printf(cmd, "%s  %-12s  %v  %v  %s\n", t.ID, t.Principal.Name, t.Principal.Scopes, t.Principal.Channels, state)
}

func tokenRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke TOKEN_ID", Short: "end a credential at once", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := anuencia.ParseID[anuencia.TokenID](args[0])
			if err != nil {
				return fmt.Errorf("token id: %w", err)
			}
			return withApp(cmd, func(a *app) error {
				if err := a.service.RevokeTokenOnHost(cmd.Context(), id); err != nil {
					return fmt.Errorf("revoke: %w", err)
				}
				return printf(cmd, "revoked\n")
			})
		},
	}
	settingFlags(cmd, "data", "catalog", "policies", "demo")
	return cmd
}
