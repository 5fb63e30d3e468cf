// Package dirwatch says when a folder of the operator's (catalog, policies,
// directory of people) has changed.
package dirwatch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch calls changed after the folder, or anything below it, has changed and
// then been quiet for that long: an editor or a deployment writes many times. It
// returns nil when ctx ends, else an error when it cannot watch. changed is
// called from one goroutine, never twice at once.
func Watch(ctx context.Context, dir string, quiet time.Duration, changed func()) (err error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := addTree(w, dir); err != nil {
		return err
	}
	due := make(chan struct{}, 1)
	timer := time.AfterFunc(quiet, func() {
		select {
		case due <- struct{}{}:
		default: // one is due already
		}
	})
	timer.Stop()
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-due:
			changed()
		case ev, open := <-w.Events:
			if !open {
				return errors.New("watch: the watcher has ended")
			}
			if ev.Op == fsnotify.Chmod {
				continue
			}
			if ev.Has(fsnotify.Create) {
				if err := addTree(w, ev.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return err
				}
			}
			timer.Reset(quiet)
		case _, open := <-w.Errors:
			if !open {
				return errors.New("watch: the watcher has ended")
			}
			timer.Reset(quiet) // events may have been lost: look again
		}
	}
}

// addTree watches root, when it is a folder, and every folder below it.
func addTree(w *fsnotify.Watcher, root string) error {
	info, err := os.Stat(root)
	if err != nil {
		return fmt.Errorf("watch: %w", err)
	}
	if !info.IsDir() {
		return nil
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.IsDir() {
			return nil
		}
		return w.Add(path)
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", filepath.Base(root), err)
	}
	return nil
}
