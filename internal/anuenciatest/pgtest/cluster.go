package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

const startTimeout = 60 * time.Second

// cluster is a throwaway server on a free port of the loopback address.
type cluster struct {
	dir string
	url string
	cmd *exec.Cmd
	end chan error
}

// programs finds the folder that has initdb and postgres.
func programs() (string, error) {
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		return "", fmt.Errorf("look for PostgreSQL: %w", err)
	}
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	for i := len(dirs) - 1; i >= 0; i-- {
		if executable(filepath.Join(dirs[i], "initdb")) && executable(filepath.Join(dirs[i], "postgres")) {
			return dirs[i], nil
		}
	}
	return "", errors.New(missing)
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir() && info.Mode()&0o111 != 0
}

// credential is whom the server runs as: PostgreSQL refuses root.
func credential() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil //nolint:nilnil // nil means: as ourselves
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("PostgreSQL does not run as root and there is no user postgres: %w", err)
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("user postgres: %w", err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

func launch(bin string) (*cluster, error) {
	as, err := credential()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "anuencia-pg-")
	if err != nil {
		return nil, fmt.Errorf("folder: %w", err)
	}
	c := &cluster{dir: dir, end: make(chan error, 1)}
	if err := c.boot(bin, as); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

func (c *cluster) boot(bin string, as *syscall.Credential) error {
	if as != nil {
		if err := os.Chown(c.dir, int(as.Uid), int(as.Gid)); err != nil {
			return fmt.Errorf("folder: %w", err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	data := filepath.Join(c.dir, "data")
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync")
	initdb.SysProcAttr, initdb.Dir = &syscall.SysProcAttr{Credential: as}, c.dir
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	fsync := "off"
	if os.Getenv(envDurable) == "1" {
		fsync = "on"
	}
	args := []string{
		"-D", data, "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", c.dir,
		"-c", "fsync=" + fsync, "-c", "full_page_writes=" + fsync, "-c", "max_connections=200", "-c", "shared_buffers=64MB",
	}
	// The server outlives this context; stop ends it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), filepath.Join(bin, "postgres"), args...)
	cmd.SysProcAttr, cmd.Dir = attributes(as), c.dir
	log, err := os.Create(filepath.Join(c.dir, "server.log"))
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := errors.Join(cmd.Start(), log.Close()); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	c.cmd = cmd
	go func() { c.end <- cmd.Wait() }()
	c.url = "postgres://postgres@127.0.0.1:" + strconv.Itoa(port) + "/postgres?sslmode=disable"
	return c.answers(ctx)
}

// answers waits until the server takes connections.
func (c *cluster) answers(ctx context.Context) error {
	for {
		conn, err := pgx.Connect(ctx, c.url)
		if err == nil {
			if err := conn.Close(ctx); err != nil {
				return fmt.Errorf("close: %w", err)
			}
			return nil
		}
		pause, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		select {
		case ended := <-c.end:
			cancel()
			c.cmd = nil
			return fmt.Errorf("postgres ended: %w: %s", ended, c.log())
		case <-pause.Done():
			cancel()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("postgres does not answer: %w: %s", err, c.log())
		}
	}
}

func (c *cluster) log() []byte {
	text, err := os.ReadFile(filepath.Join(c.dir, "server.log"))
	if err != nil {
		return []byte(err.Error())
	}
	return text
}

// stop ends the server by its own process id and removes its folder.
func (c *cluster) stop() error {
	var err error
	if c.cmd != nil {
		err = c.cmd.Process.Signal(syscall.SIGINT) // fast shutdown
		err = errors.Join(err, <-c.end)
	}
	return errors.Join(err, os.RemoveAll(c.dir))
}

func freePort(ctx context.Context) (int, error) {
	var cfg net.ListenConfig
	l, err := cfg.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("free port: %w", err)
	}
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, errors.Join(errors.New("free port: no TCP address"), l.Close())
	}
	return addr.Port, l.Close()
}
