package snapshots

import "github.com/dgraph-io/ristretto/v2"

// Stats are what a [Store] has done since it was opened, and what waits now.
type Stats struct {
	FilesWritten int64
	BytesWritten int64
	DiskErrors   DiskErrors
	// FilesWaiting are those that failed to be written last and are served from memory until the disk takes them.
	FilesWaiting int
	// BadFiles are the stored files found torn, altered, foreign or of a newer format.
	BadFiles int64
	// Latest is the cache of current answers, which must never refuse or evict; History that of past ones, which may.
	Latest, History CacheStats
}

// DiskErrors counts the writes that failed by the step that did, retries included.
type DiskErrors struct {
	Create  int64 // of a directory or a temporary file
	Write   int64
	Sync    int64
	Rename  int64
	SyncDir int64
}

// CacheStats counts what a cache did not take or keep.
type CacheStats struct {
	SetsRejected int64
	SetsDropped  int64
	Evictions    int64
}

// Stats returns the counts.
func (s *Store) Stats() Stats {
	s.mu.Lock()
	waiting := len(s.pending)
	s.mu.Unlock()
	w := s.writer
	return Stats{
		FilesWritten: w.files.Load(), BytesWritten: w.bytes.Load(),
		DiskErrors: DiskErrors{
			Create: w.failed[stepCreate].Load(), Write: w.failed[stepWrite].Load(), Sync: w.failed[stepSync].Load(),
			Rename: w.failed[stepRename].Load(), SyncDir: w.failed[stepSyncDir].Load(),
		},
		FilesWaiting: waiting, BadFiles: s.bad.Load(),
		Latest: cacheStats(s.latest.cache.Metrics), History: cacheStats(s.history.Metrics),
	}
}

func cacheStats(m *ristretto.Metrics) CacheStats {
	return CacheStats{
		SetsRejected: int64(m.SetsRejected()), SetsDropped: int64(m.SetsDropped()), Evictions: int64(m.KeysEvicted()),
	}
}
