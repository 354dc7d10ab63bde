// Package fleet lets many processes serve the same answers. One member of the fleet, the refresher, holds the lease and asks
// the upstream. The others follow: they serve the files that the refresher writes. NATS JetStream carries the files.
//
// A fleet of the source cboe has the stream strikecache-cboe, which keeps the last message of each subject. The subjects begin
// with strikecache.cboe: "lease" says who refreshes and what the fleet serves ([Origin]). "file.PATH.PART" is a part of an
// object, which is a file of the data directory, as it is. "current" names the files of the current answers ([Current]).
// "alive" renews the lease.
//
// A member takes the lease when it publishes "lease". The sequence number of that message is the number of its lease, which the
// header of each later message has. The refresher publishes a message only if the sequence number of the last message is the one
// that it knows. So JetStream refuses the messages of a refresher that has lost the lease, as soon as the next one has published
// "lease". All members see the messages in the same order.
//
// Each message renews the lease, and the refresher publishes one a second. A member may take the lease when it has learnt of no
// message for seven seconds, and if the last message is still the same: the refresher stops after six, by its own clocks.
//
// A refresher publishes an answer before it stores and serves it. So a member that is killed at any instant has nothing that the
// others do not get.
//
// Whoever may write to the stream can change what the fleet serves. But a member stores only files that are whole, not older
// than its own, of its source and of a known product. The files on the disk of each member stay the record: when the stream is
// lost, the next refresher fills it again.
//
// One goroutine of a [Member] talks to NATS. Another lets the process update the freshness of its answers. The refreshes run beside them
// while the member holds the lease.
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

// Current names the current answers of the resources that have one or that the source can feed.
type Current struct {
	PublishedAt time.Time         `json:"published_at"`
	Resources   map[string]Served `json:"resources"`
}

// Process is the part of this process that makes answers. UpdateFreshness, Refresh and Accept may run beside each other and beside the
// other methods, of which a [Member] calls one at a time.
type Process interface {
	// Origin returns what this process serves: its own market, or the one that it has joined.
	Origin() Origin
	// Join adopts what the fleet serves. The error says why this process cannot serve it.
	Join(Origin) error
	// ClockError returns why the clock of this process may be behind, nil if nothing says so. A [Member] asks the NATS server's clock, too.
	ClockError() error
	// Failing returns why Refresh cannot keep the answers fresh, nil while it can.
	Failing() error
	// Accept checks a file of the fleet and stores it; see [snapshots.Store.Accept]. It may wait for the disk.
	Accept(path, digest string, file []byte) error
	// Refresh refreshes the answers until ctx ends, and returns when it has written the last file.
	Refresh(ctx context.Context)
	// Serving returns what Refresh serves at this moment, or served at its end.
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
	Lease     uint64 // the newest lease that this member knows, 0 for none
	// SilentSince is when the last refresher was heard of, the zero time while one is heard of.
	SilentSince time.Time
	Lag         time.Duration // of the answers that were made current last, from published to current; 0 before the first
	Put         int64         // files that this member published
	Applied     int64         // files of the fleet that this member stored
	Refused     map[string]int64
	Reconnects  int64
	Err         error // why this member cannot take part, nil while it can
}

// Reasons for which a member refuses a file, or another message.
const (
	reasonPath    = "path"    // it is not published under a path in the directory
	reasonSize    = "size"    // over [snapshots.MaxTransfer]
	reasonLease   = "lease"   // published under another lease than the newest one, or under none
	reasonCorrupt = "corrupt" // cut off, altered or incomplete
	reasonFormat  = "format"  // of a newer version
	reasonForeign = "foreign" // of another source or product
	reasonOlder   = "older"   // older than the stored answer
)

var reasons = []string{reasonPath, reasonSize, reasonLease, reasonCorrupt, reasonFormat, reasonForeign, reasonOlder}
