package dirwatch_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anuencia-harness/anuencia/adapters/dirwatch"
)

// start watches dir and gives a channel that receives at every call.
func start(t *testing.T, dir string) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	calls := make(chan struct{}, 100)
	ended := make(chan error, 1)
	go func() { ended <- dirwatch.Watch(ctx, dir, 30*time.Millisecond, func() { calls <- struct{}{} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("watch ended with %v", err)
		}
	})
	return calls
}

// changeUntil repeats a change until the watcher tells of one: it may not have
// begun when the first was made.
func changeUntil(t *testing.T, calls <-chan struct{}, change func(n int)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for n := 0; ctx.Err() == nil; n++ {
		change(n)
		wait, stop := context.WithTimeout(ctx, 300*time.Millisecond)
		select {
		case <-calls:
			stop()
			return
		case <-wait.Done():
			stop()
		}
	}
	t.Fatal("no change was told")
}

func write(t *testing.T, path string, n int) {
	t.Helper()
	if err := os.WriteFile(path, []byte{byte(n)}, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestTellsOfChangesInTheFolderAndInNewFoldersBelow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	calls := start(t, dir)
	changeUntil(t, calls, func(n int) { write(t, filepath.Join(dir, "a.yaml"), n) })
	below := filepath.Join(dir, "below", "deep")
	if err := os.MkdirAll(below, 0o700); err != nil {
		t.Fatal(err)
	}
	changeUntil(t, calls, func(int) {})
	changeUntil(t, calls, func(n int) { write(t, filepath.Join(below, "b.yaml"), n) })
	changeUntil(t, calls, func(int) {
		if err := os.RemoveAll(filepath.Join(dir, "a.yaml")); err != nil {
			t.Fatal(err)
		}
	})
}

func TestManyWritesAreOneChange(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	calls := start(t, dir)
	changeUntil(t, calls, func(n int) { write(t, filepath.Join(dir, "a.yaml"), n) })
	for n := range 200 {
		write(t, filepath.Join(dir, "b.yaml"), n)
	}
	changeUntil(t, calls, func(int) {})
	if n := len(calls); n > 20 {
		t.Errorf("200 writes were told %d times", n+1)
	}
}

func TestAFolderThatIsNotThere(t *testing.T) {
	t.Parallel()
	if err := dirwatch.Watch(t.Context(), filepath.Join(t.TempDir(), "none"), time.Millisecond, func() {}); err == nil {
		t.Error("a missing folder was watched")
	}
}
