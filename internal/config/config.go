// Package config reads the settings of a server: defaults, then a strict YAML
// file, then ANUENCIA_* variables (NAME_FILE reads the value from a file), then
// flags. Everything is checked before a socket opens, and all problems are named
// at once.
package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config is every setting of a server (contracts section 7).
type Config struct {
	Listen             string // host:port
	Data               string // folder
	Demo               bool
	Migrate            bool   // bring the schema up to date before serving
	Policies           string // folder, "" for the embedded policies
	Catalog            string // folder, "" for the embedded demo
	DatabaseURL        Secret // postgres://, "" for SQLite in Data
	MigrateDatabaseURL Secret // of the owner; "" for DatabaseURL
	Sources            map[string]Secret
	TLSCert, TLSKey    string // files
	TLSTerminated      bool   // something in front speaks TLS
	CORSOrigins        []string
	Timezone           string
	Language           string // "es" or "en"
	LogLevel           string // "debug", "info", "warn", "error"
}

// Defaults are the settings when nothing is said.
func Defaults() Config {
	return Config{
		Listen: "127.0.0.1:8080", Data: "anuencia-data", Sources: map[string]Secret{}, Timezone: "America/Lima", Language: "es", LogLevel: "info",
	}
}

// Prefix begins every variable that is ours.
const Prefix = "ANUENCIA_"

// testPrefix is left to the tests of the project.
const testPrefix = Prefix + "TEST_"

type setter func(c *Config, value string) error

func text(field func(*Config) *string) setter {
	return func(c *Config, v string) error { *field(c) = v; return nil }
}

func secret(field func(*Config) *Secret) setter {
	return func(c *Config, v string) error { *field(c) = Secret(v); return nil }
}

func truth(field func(*Config) *bool) setter {
	return func(c *Config, v string) error {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return errors.New("true or false is expected")
		}
		*field(c) = b
		return nil
	}
}

// settings maps each name, as the file and the flags spell it, to its field.
// The variable is the same in capitals behind the prefix.
func settings() map[string]setter {
	return map[string]setter{
		"listen":               text(func(c *Config) *string { return &c.Listen }),
		"data":                 text(func(c *Config) *string { return &c.Data }),
		"demo":                 truth(func(c *Config) *bool { return &c.Demo }),
		"migrate":              truth(func(c *Config) *bool { return &c.Migrate }),
		"policies":             text(func(c *Config) *string { return &c.Policies }),
		"catalog":              text(func(c *Config) *string { return &c.Catalog }),
		"database_url":         secret(func(c *Config) *Secret { return &c.DatabaseURL }),
		"migrate_database_url": secret(func(c *Config) *Secret { return &c.MigrateDatabaseURL }),
		"tls_cert":             text(func(c *Config) *string { return &c.TLSCert }),
		"tls_key":              text(func(c *Config) *string { return &c.TLSKey }),
		"tls_terminated":       truth(func(c *Config) *bool { return &c.TLSTerminated }),
		"cors_origins": func(c *Config, v string) error {
			c.CORSOrigins = list(v)
			return nil
		},
		"timezone":  text(func(c *Config) *string { return &c.Timezone }),
		"language":  text(func(c *Config) *string { return &c.Language }),
		"log_level": text(func(c *Config) *string { return &c.LogLevel }),
	}
}

func list(v string) []string {
	var out []string
	for part := range strings.SplitSeq(v, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

var sourceName = regexp.MustCompile(`^source_([a-z][a-z0-9_]*)_url$`)

// set applies one setting by its name.
func (c *Config) set(name, value string) error {
	if apply, known := settings()[name]; known {
		return apply(c, value)
	}
	if m := sourceName.FindStringSubmatch(name); m != nil {
		c.Sources[m[1]] = Secret(value)
		return nil
	}
	return errors.New("there is no such setting")
}

// Load reads the settings. file is a YAML file or ""; env is like os.Environ;
// flags are name and value of the flags that were given. The error names every
// problem, never the value of a secret.
func Load(file string, env []string, flags map[string]string) (Config, error) {
	c := Defaults()
	var problems []error
	add := func(where, name string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s %s: %w", where, name, err))
		}
	}
	if file != "" {
		problems = append(problems, c.readFile(file)...)
	}
	vars := variables(env)
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		setting, value, err := fromEnv(name, vars)
		if err == nil {
			err = c.set(setting, value)
		}
		add("variable", name, err)
	}
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		add("flag", "--"+strings.ReplaceAll(name, "_", "-"), c.set(name, flags[name]))
	}
	problems = append(problems, c.check()...)
	return c, errors.Join(problems...)
}

func (c *Config) readFile(file string) []error {
	raw, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return []error{fmt.Errorf("settings file: %w", err)}
	}
	var values map[string]yaml.Node
	if err := yaml.Unmarshal(raw, &values); err != nil {
		return []error{fmt.Errorf("settings file: %w", err)}
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		node := values[name]
		if node.Kind != yaml.ScalarNode && node.Kind != yaml.SequenceNode {
			problems = append(problems, fmt.Errorf("settings file, %s: a value is expected", name))
			continue
		}
		value := node.Value
		if node.Kind == yaml.SequenceNode {
			var parts []string
			for _, n := range node.Content {
				parts = append(parts, n.Value)
			}
			value = strings.Join(parts, ",")
		}
		if err := c.set(name, value); err != nil {
			problems = append(problems, fmt.Errorf("settings file, %s: %w", name, err))
		}
	}
	return problems
}

func variables(env []string) map[string]string {
	out := map[string]string{}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		if strings.HasPrefix(name, Prefix) && !strings.HasPrefix(name, testPrefix) {
			out[name] = value
		}
	}
	return out
}

// fromEnv gives the setting that a variable stands for. NAME and NAME_FILE
// together are refused: one of them would be silently ignored.
func fromEnv(name string, vars map[string]string) (setting, value string, err error) {
	setting = strings.ToLower(strings.TrimPrefix(name, Prefix))
	base, isFile := strings.CutSuffix(setting, "_file")
	if !isFile {
		return setting, vars[name], nil
	}
	if _, both := vars[strings.TrimSuffix(name, "_FILE")]; both {
		return "", "", errors.New("set together with the variable without _FILE")
	}
	raw, err := os.ReadFile(filepath.Clean(vars[name]))
	if err != nil {
		return "", "", fmt.Errorf("read the value: %w", err)
	}
	value = strings.TrimRight(string(raw), "\r\n")
	if value == "" {
		return "", "", errors.New("the file is empty")
	}
	return base, value, nil
}

func (c *Config) check() []error {
	var problems []error
	bad := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	host, _, err := net.SplitHostPort(c.Listen)
	bad(err != nil, "listen: host:port is expected, not %q", c.Listen)
	loopback := host == "localhost"
	if ip := net.ParseIP(host); ip != nil {
		loopback = ip.IsLoopback()
	}
	bad(err == nil && c.Demo && !loopback, "listen: the demo listens on loopback only, not on %q", c.Listen)
	bad(err == nil && !loopback && c.TLSCert == "" && !c.TLSTerminated,
		"listen: plaintext on %q needs tls_cert and tls_key, or tls_terminated when something in front speaks TLS", c.Listen)
	bad((c.TLSCert == "") != (c.TLSKey == ""), "tls_cert and tls_key go together")
	bad(c.Data == "", "data: a folder is needed")
	for _, s := range []struct {
		name string
		url  Secret
	}{{"database_url", c.DatabaseURL}, {"migrate_database_url", c.MigrateDatabaseURL}} {
		u, err := url.Parse(s.url.Reveal())
		bad(s.url != "" && (err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql")), "%s: postgres://... is expected", s.name)
	}
	for name, address := range c.Sources {
		scheme, _, isURL := strings.Cut(address.Reveal(), "://")
		u, err := url.Parse(address.Reveal())
		bad(address == "" || (isURL && (err != nil || u.Host == "" || (scheme != "postgres" && scheme != "postgresql"))) ||
			(!isURL && strings.ContainsAny(address.Reveal(), "%\x00")), "source_%s_url: postgres://... or the path of a SQLite file is expected", name)
	}
	_, err = time.LoadLocation(c.Timezone)
	bad(err != nil, "timezone: %q is not known", c.Timezone)
	bad(c.Language != "es" && c.Language != "en", "language: es or en is expected, not %q", c.Language)
	bad(!slices.Contains([]string{"debug", "info", "warn", "error"}, c.LogLevel), "log_level: debug, info, warn or error is expected, not %q", c.LogLevel)
	for _, o := range c.CORSOrigins {
		u, err := url.Parse(o)
		bad(err != nil || u.Host == "" || u.Path != "" || (u.Scheme != "http" && u.Scheme != "https"), "cors_origins: %q is no origin", o)
	}
	return problems
}

// CheckServe names what a server needs beyond sound settings: outside the demo,
// a catalog of the institution's own; and a certificate that can be read.
func (c *Config) CheckServe() error {
	if !c.Demo && c.Catalog == "" {
		return errors.New("catalog: a folder is needed outside the demo (--catalog DIR); --demo starts a small institution to try")
	}
	if c.TLSCert != "" {
		if _, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey); err != nil {
			return fmt.Errorf("tls_cert, tls_key: %w", err)
		}
	}
	return nil
}
