package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
)

// sweep looks for the blobs that neither the store has nor the manifest names, and removes some of them: publications wait meanwhile.
func (l *lease) sweep() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	began := time.Now()
	if len(l.old) == 0 && time.Since(l.swept) > l.unusedFor/2 {
		if err := l.findOld(); err != nil {
			return err
		}
	}
	for len(l.old) > 0 && time.Since(began) < tickEvery/4 && l.Holds() { // the others at the next tick
		var removing errgroup.Group
		some := l.old[:min(2*fetchers, len(l.old))]
		for _, digest := range some {
			if time.Since(l.blobs[digest]) > l.unusedFor { // else it is needed again
				delete(l.blobs, digest)
				removing.Go(func() error { return l.bucket.remove(context.Background(), digest) })
			}
		}
		if err := removing.Wait(); err != nil {
			return fmt.Errorf("remove an old blob: %w", err)
		}
		l.old = l.old[len(some):]
	}
	return nil
}

// findOld finds the blobs to remove. It first lists those of the bucket if it has lost some, or has what no blob needs.
func (l *lease) findOld() error {
	l.swept = time.Now()
	info, err := l.bucket.stream.Info(context.Background())
	if err != nil {
		return fmt.Errorf("look at the blobs: %w", err)
	}
	if info.State.NumSubjects != 2*uint64(len(l.blobs)) { // a blob has one of its chunks, and one of the message that names it
		if l.blobs, err = l.bucket.list(l.ctx, l.blobs); err != nil {
			return err
		}
		l.manifest.Resources = nil // it may be lost: publish it again
	}
	if float64(info.State.Bytes) > 0.8*float64(info.Config.MaxBytes) && info.Config.MaxBytes > 0 {
		l.cfg.Log.Warn("fleet: the bucket is over 80 % full, raise its max_bytes", "bytes", info.State.Bytes, "limit", info.Config.MaxBytes)
	}
	used := append(slices.Collect(maps.Values(l.manifest.Dates)), l.pointer.Manifest)
	for _, s := range l.manifest.Resources {
		used = append(used, s.SHA256)
	}
	for _, file := range l.cfg.Store.Paths() {
		used = append(used, l.cfg.Store.Digest(file))
	}
	for _, digest := range used {
		if _, has := l.blobs[digest]; has {
			l.blobs[digest] = l.swept
		}
	}
	for digest, at := range l.blobs {
		if l.swept.Sub(at) > l.unusedFor {
			l.old = append(l.old, digest)
		}
	}
	return nil
}
