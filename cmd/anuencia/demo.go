package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/anuencia-harness/anuencia/internal/anuencia"
	"github.com/anuencia-harness/anuencia/internal/harness"
)

const tokensFile = "demo-tokens.json" //nolint:gosec // the name of a file

// demoTokens are the callers of the demo institution (product.md).
func demoTokens() []harness.NewToken {
	api := []anuencia.Channel{anuencia.ChannelAPI}
	submit := []anuencia.Scope{anuencia.ScopeSubmit}
	own := func(name string, scopes ...anuencia.Scope) harness.NewToken {
		return harness.NewToken{
			Name: name, Scopes: scopes, Channels: api, Person: anuencia.Handle{Channel: anuencia.ChannelAPI, ExternalID: name},
		}
	}
	machine := func(name string, ch anuencia.Channel, actFor ...string) harness.NewToken {
		return harness.NewToken{Name: name, Scopes: submit, Channels: []anuencia.Channel{ch}, ActFor: actFor}
	}
	clerk := own("clerk", anuencia.ScopeSubmit)
	clerk.ActFor = []string{"estudiante"}
	people := []string{"estudiante", "registro"}
	return []harness.NewToken{
		own("requester", anuencia.ScopeSubmit),
		clerk,
		own("approver", anuencia.ScopeSubmit, anuencia.ScopeDecide),
		own("approver2", anuencia.ScopeSubmit, anuencia.ScopeDecide),
		own("auditor", anuencia.ScopeAudit),
		own("admin", anuencia.ScopeAdmin, anuencia.ScopeOperate),
		machine("n8n", anuencia.ChannelN8N, people...),
		machine("uhp", anuencia.ChannelUHP, people...),
		machine("uhp2", anuencia.ChannelUHP, people...),
		machine("ui", anuencia.ChannelUI, people...),
	}
}

// prepareDemo makes the institution's data and the tokens on the first start; a
// second start keeps all.
func (a *app) prepareDemo(ctx context.Context) error {
	if err := a.tools.seed(ctx); err != nil {
		return err
	}
	path := filepath.Join(a.cfg.Data, tokensFile)
	if a.tokensWork(ctx, path) {
		return nil
	}
	tokens := map[string]string{}
	for _, n := range demoTokens() {
		secret, _, err := a.service.CreateTokenOnHost(ctx, n)
		if err != nil {
			return fmt.Errorf("token of %s: %w", n.Name, err)
		}
		tokens[n.Name] = secret
	}
	raw, err := json.MarshalIndent(tokens, "", "  ")
	if err != nil {
		return fmt.Errorf("encode tokens: %w", err)
	}
	if err := writeSecret(path, append(raw, '\n')); err != nil {
		return fmt.Errorf("write tokens: %w", err)
	}
	return nil
}

// tokensWork says whether the file holds tokens of this database; another
// database, or a start that died before it wrote them, gets new ones.
func (a *app) tokensWork(ctx context.Context, path string) bool {
	raw, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return false
	}
	tokens := map[string]string{}
	if json.Unmarshal(raw, &tokens) != nil {
		return false
	}
	for _, n := range demoTokens() {
		if _, err := a.service.Authenticate(ctx, tokens[n.Name]); err != nil {
			return false
		}
	}
	return true
}

// writeSecret replaces a file as a whole, readable by its owner only.
func writeSecret(path string, content []byte) error {
	tmp := path + ".new"
	f, err := os.OpenFile(filepath.Clean(tmp), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(tmp, path)
}
