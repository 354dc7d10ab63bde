// Package loop answers HTTP/1 requests on plain connections of Linux, with one epoll loop per core. It takes a connection
// from accept to close. It does not know what a request or an answer means: a [Handler] turns the bytes of a head into the
// bytes of an answer.
//
// The path of a request:
//
//  1. One goroutine accepts connections and gives each to the loop that has the fewest.
//  2. The loop reads the bytes that have arrived. It looks up the head in its memo, a cache of the answers of the current second.
//     If the answer is there, the handler only counts the request. Otherwise the handler parses the head and makes the answer.
//  3. The loop collects small answers to pipelined requests and writes them together.
//  4. Bytes that the kernel does not take, because the client reads slowly, stay in memory until the kernel takes them (see state).
//
// Other engines use [Connections], which limits the number of connections, and [Lifecycle], which accepts connections and starts
// and stops an engine.
package loop

import (
	"log/slog"
	"net"
	"net/netip"
	"os"
	"time"
)

// Handler makes the answers of one loop. The goroutine of that loop calls the methods, one at a time. No method may block.
type Handler interface {
	// Answer answers the request whose head is at the start of b. It returns the length of the head in bytes. If b holds only a
	// part of a head, it returns 0 and makes no answer, but it must make an answer if b has [MaxHead] bytes. If it refuses the
	// request, it returns len(b), because it does not know where the next request begins. b is valid during the call.
	Answer(b []byte, r Request, a *Answer) (used int)
	// Again counts a request that the loop can answer from its memo. It returns false, and counts nothing, if the answer may be
	// outdated.
	Again(a *Answer, arrived time.Time) bool
	// Refuse makes the last answer of a connection. b holds the part of a head that has arrived, possibly empty. b is valid during
	// the call.
	Refuse(why Refusal, b []byte, r Request, a *Answer)
}

// Request is what a loop knows of a request beside its bytes.
type Request struct {
	From     netip.Addr // of the client; the zero address for a Unix socket
	Now      time.Time  // of the call of epoll_wait that reported the request
	Stopping bool       // the server is stopping: the connection must end after the answer
}

// Answer is the answer to one request: Head, Body and Tail, sent in this order. A handler fills it in.
type Answer struct {
	Head []byte // the handler appends to it
	Body []byte // must never change: it may be sent at any later time, to several clients
	Tail []byte // must not change until the next call of the handler

	Close  bool // the connection ends after the answer
	Linger bool // with Close: the client may still be sending, so the loop reads and drops bytes before it closes

	// Repeats says that a head with the same bytes gets the same answer until the second of Request.Now ends or Again returns false.
	// The Tail of such an answer must never change, too.
	Repeats bool
	Version uint64 // for the handler, in Again
	Label   uint32 // for the handler, in Again
}

// Refusal is the reason for an answer without a request.
type Refusal uint8

// The refusals.
const (
	TooManyConnections Refusal = iota
	TooLate                    // the head did not arrive in time
)

// Listener is a *net.TCPListener, a *net.UnixListener or a [Passed].
type Listener interface {
	net.Listener
	SetDeadline(t time.Time) error
	File() (*os.File, error)
}

// Passed is a listener on a socket of the service manager, which keeps the socket open and passes it to the next process.
type Passed struct{ *net.TCPListener }

// Config configures a [Server]. All fields but Now must be set.
type Config struct {
	NewHandler   func() Handler // called once for each loop, and once for refusals
	Loops        int
	Connections  *Connections
	ReadTimeout  time.Duration // for the first byte of a connection, and for a head from its first byte
	WriteTimeout time.Duration // for the rest of an answer that the kernel did not take at once
	IdleTimeout  time.Duration // from an answer until the next request
	Log          *slog.Logger
	Now          func() time.Time // the clock of the timeouts; nil: time.Now
}

// The limits of a connection.
const (
	MaxHead = 16 << 10 // bytes of request line and header fields
	// SendBuffer is how many bytes of answers the kernel takes before the client has acknowledged them. Without it, the
	// kernel takes up to 4 MB, and clients that send requests and read nothing exhaust the TCP memory of the machine.
	SendBuffer = 256 << 10
	// After the last answer of a connection, at most LingerBytes are read and dropped, for at most LingerTimeout. A close with unread
	// bytes would reset the connection, and the client would lose answers that it has not read yet.
	LingerTimeout = 500 * time.Millisecond
	LingerBytes   = 256 << 10
	// DrainTimeout is how long a stopping server accepts connections that the kernel has already accepted. It is also how long a
	// stopping server waits for one more request on an idle connection that has had a request before.
	DrainTimeout = 100 * time.Millisecond
	// FirstDrainTimeout is how long a stopping server waits for the TLS handshake or the first request of a connection: a client
	// that has just connected is about to send a request.
	FirstDrainTimeout = time.Second
	// MaxRejecting is how many connections over the limit may, at a time, send their request before they are refused. Further
	// connections are refused at once: their clients may report a broken connection and not the refusal.
	MaxRejecting = 64
)
