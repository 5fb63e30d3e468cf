package pgtest

import "syscall"

// attributes end the server with its parent, so that a killed test leaves none.
func attributes(as *syscall.Credential) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGINT}
}
