// Package fleet lets many processes serve the same answers. One member of the fleet, the refresher, holds the lease and asks
// the upstream. The others follow: they serve the files that the refresher writes. NATS JetStream carries them.
//
// A fleet of the source cboe has the key-value buckets strikecache-cboe and strikecache-cboe-files. A file, the list of the files of a date, and the
// manifest are blobs in the second, by digest. The manifest names the current answers with their freshness, and the lists. One key of the first,
// the pointer, names the manifest and the holder of the lease. The holder replaces it each second by compare-and-set: one write is
// the lease, the publication, and the fence against a holder that was deposed.
//
// Every member looks at the pointer each second, and fetches what it lacks. One that has seen the same pointer for seven seconds
// takes the lease. The holder stops when it has written nothing for six seconds. Who finds no manifest, because the fleet is
// new or NATS has lost its files, waits up to eight seconds longer: the longer, the older its newest answer is.
//
// A refresher publishes an answer before it stores and serves it. So a member that is killed at any instant has nothing that the
// others do not get. The files on the disk of each member stay the record: the next refresher fills a lost bucket again.
//
// Whoever may write to the bucket can change what the fleet serves. But a member stores only files that are whole, not older
// than its own, of its source and of a known product.
package fleet

import (
	"context"
	"log/slog"
	"time"

	"strikecache/snapshots"
)

// Origin says what a fleet serves. The first refresher decides it.
type Origin struct {
	// Identity names the market, such as "simulated market, seed 1".
	Identity string `json:"identity"`
	// The market's time is Market when the machine's clock shows Wall, and advances by Speed seconds a second. A zero Market
	// says that the market's time is the machine's.
	Market time.Time `json:"market"`
	Wall   time.Time `json:"wall"`
	Speed  float64   `json:"speed"`
}

// Served is what the fleet serves of one resource: the answer in [snapshots.CurrentPath].
type Served struct {
	SHA256    string              `json:"sha256"`    // the digest in the header of the file; "": there is no answer yet
	Freshness snapshots.Freshness `json:"freshness"` // the file may have an earlier one
}

// Process is the part of this process that makes answers. UpdateFreshness, Refresh and Accept may run beside each other and beside the
// other methods. Only Accept, Apply and Refresh may wait for the disk.
type Process interface {
	// Origin returns what this process serves: its own market, or the one that it has joined.
	Origin() Origin
	// Join adopts what the fleet serves. The error says why this process cannot serve it.
	Join(Origin) error
	// ClockError returns why the clock of this process may be behind, nil if nothing says so. A [Member] asks the NATS server's clock, too.
	ClockError() error
	// Failing returns why Refresh cannot keep the answers fresh, or makes no progress, nil while it can.
	Failing() error
	// Behind returns how long ago, by the market's clock, the newest stored answer was computed.
	Behind() time.Duration
	// Accept checks a file of the fleet and stores it; see [snapshots.Store.Accept]. It may wait for the disk.
	Accept(path, digest string, file []byte) error
	// Refresh refreshes the answers until ctx ends, and returns when it has written the last file.
	Refresh(ctx context.Context)
	// Serving returns what Refresh serves at this moment, or served at its end, of the resources that have an answer or that the source can feed.
	Serving() map[string]Served
	// Apply makes answers current whose files are stored. It is not called while Refresh runs.
	Apply(map[string]Served) error
	// UpdateFreshness is called about every second while this member does not hold the lease; Refresh may still be ending. since is when
	// the last refresher was heard of, the zero time while one is heard of.
	UpdateFreshness(since time.Time) error
}

// The roles of a member.
const (
	RoleRefresher = "refresher" // holds the lease
	RoleFollower  = "follower"  // takes the lease when it is free
	RoleEdge      = "edge"      // never takes the lease
)

// Config configures a [Member].
type Config struct {
	Flags
	Source  string
	Store   *snapshots.Store
	Process Process
	Log     *slog.Logger
}

// Status says how a member is doing.
type Status struct {
	Role      string
	Connected bool
	Lease     uint64 // number of the newest lease that this member knows, 0 for none
	// SilentSince is when the last refresher was heard of, the zero time while one is heard of.
	SilentSince time.Time
	Lag         time.Duration // of the answers that were made current last, from published to current; 0 before the first
	Put         int64         // blobs that this member put into the bucket
	Applied     int64         // files of the fleet that this member stored
	Refused     map[string]int64
	Reconnects  int64
	complete    bool  // at the last look, this member had all files
	Err         error // why this member cannot take part, or what it refuses of the fleet; nil while all is well
}
