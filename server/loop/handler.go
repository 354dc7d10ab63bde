// Package loop answers HTTP/1 requests on plain TCP connections of Linux, with one epoll loop per core. It takes a connection
// from accept to close. It does not know what a request or an answer means: a [Handler] turns the bytes of a head into the
// bytes of an answer.
//
// The path of a request:
//
//  1. One goroutine accepts connections and gives each to the loop that has the fewest.
//  2. The loop reads what has arrived. It looks the bytes of the head up in its memo of the answers of this second. If the
//     answer is there, the handler only counts it again. Otherwise the handler parses the head and makes the answer.
//  3. The loop collects small answers to pipelined requests and writes them together.
//  4. What the client does not take stays in memory, and the connection waits until the client takes it (see state).
//
// The limits of connections, the way in which connections are accepted while descriptors are exhausted or the server stops,
// and the begin and the end of an engine are here for other engines, too: [Connections], [Life].
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
	// Answer answers the request whose head is at the start of b. It returns how many bytes the head has. It returns 0 and
	// makes no answer if b holds only a part of a head. It must make an answer if b has [MaxHead] bytes. If it refuses
	// the request, it returns len(b), because it does not know where the next request begins. b is valid during the call.
	Answer(b []byte, r Request, a *Answer) (used int)
	// Again counts an answer again that the loop remembers, to a request that arrived at an instant. It returns false, and
	// counts nothing, if the answer may not be right any more.
	Again(a *Answer, arrived time.Time) bool
	// Refuse makes the last answer of a connection. b holds what has arrived of a head. It is valid during the call.
	Refuse(why Refusal, b []byte, r Request, a *Answer)
}

// Request is what a loop knows of a request beside its bytes.
type Request struct {
	From netip.Addr // of the client
	Now  time.Time  // when epoll was asked for events
	Last bool       // the connection ends after the answer, because the server is stopping
}

// Answer is the answer to one request: Head, Body and Tail, sent in this order. A handler fills it in.
type Answer struct {
	Head []byte // the handler appends to it
	Body []byte // must never change: it may be sent at any later time, to several clients
	Tail []byte // must not change until the next call of the handler

	Last   bool // the connection ends after the answer
	Linger bool // with Last: the client may still be sending, so what it sends is read and dropped for a while

	// Repeats says that the same bytes get the same answer until the second of Request.Now ends or Again returns false. The
	// answer has no Tail then.
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

// Listener is a TCP listener, such as a *net.TCPListener.
type Listener interface {
	net.Listener
	SetDeadline(t time.Time) error
	File() (*os.File, error)
}

// Passed is a listener whose socket the service manager keeps open, and passes to the next process when this one has ended.
type Passed struct{ *net.TCPListener }

// Config configures a [Server]. All fields but Now must be set.
type Config struct {
	NewHandler   func() Handler // is called once for each loop
	Loops        int
	Connections  *Connections
	ReadTimeout  time.Duration // for the first byte of a connection, and for a head from its first byte
	WriteTimeout time.Duration // for what the client has not taken of its answers
	IdleTimeout  time.Duration // from the last answer until the next request
	Log          *slog.Logger
	Now          func() time.Time // the clock of the timeouts; nil: time.Now
}

// The limits of a connection.
const (
	MaxHead = 8 << 10 // bytes of request line and header fields
	// SendBuffer is how many bytes of answers the kernel takes before the client has acknowledged them. Without it, the
	// kernel takes up to 4 MB, and clients that send requests and read nothing exhaust the TCP memory of the machine.
	SendBuffer = 256 << 10
	// After the last answer, at most LingerBytes are read and dropped, for at most LingerTimeout. A close with unread bytes would
	// reset the connection, and the client would lose answers that are on their way.
	LingerTimeout = 500 * time.Millisecond
	LingerBytes   = 256 << 10
	// DrainTimeout is how long a stopping server accepts connections that the kernel has already accepted, and waits for a
	// request that is already on its way on an idle connection that has had one before.
	DrainTimeout = 100 * time.Millisecond
	// FirstDrainTimeout is how long a stopping server waits for the first request of a connection, or its TLS handshake: a client
	// that has just connected is about to send one.
	FirstDrainTimeout = time.Second
	// PatientRefusals is how many connections over the limit at a time may send their request before they are refused. A
	// client that gets the refusal before it has sent its request may take the connection for broken.
	PatientRefusals = 64
)
