package server

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"time"

	"strikecache/server/watch"
)

// Notifier tells a service manager such as systemd the state of this process, as sd_notify(3) describes. The methods of a
// nil Notifier do nothing.
type Notifier struct {
	conn *net.UnixConn
	log  *slog.Logger
	// aliveEvery is the interval of the messages that the process is alive; 0: the manager wants none.
	aliveEvery time.Duration
	stopAlive  func()
}

// notifyTimeout is how long sending a message may take, for a manager that does not read its socket.
const notifyTimeout = time.Second

// OpenNotifier connects to the socket in NOTIFY_SOCKET. It returns nil when the variable is not set. It logs an error and
// returns nil when the socket cannot be reached: then the manager decides what to do with the service.
func OpenNotifier(log *slog.Logger) *Notifier {
	name := os.Getenv("NOTIFY_SOCKET") // a name that begins with @ is abstract, for Go as for systemd
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		log.Error("service manager not notified", "err", err)
		return nil
	}
	n := &Notifier{conn: conn, log: log, stopAlive: func() {}}
	if n.aliveEvery, err = watchdog(os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")); err != nil {
		log.Error("no watchdog", "err", err)
	}
	return n
}

// watchdog returns half of the time after which the manager kills a silent process, as sd_watchdog_enabled(3) advises,
// and 0 when it does not watch this process.
func watchdog(usec, pid string) (time.Duration, error) {
	if usec == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	n, err := strconv.ParseUint(usec, 10, 53)
	if err != nil || n < 2 {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q", usec)
	}
	return time.Duration(n) * time.Microsecond / 2, nil //nolint:gosec // 53 bits
}

// Ready tells the manager that the process serves, with a status line for the operator. From then on, until
// [Notifier.Close], it tells the manager regularly that the process is alive.
func (n *Notifier) Ready(status string) {
	if n == nil {
		return
	}
	n.tell("READY=1\nSTATUS=" + status)
	if n.aliveEvery > 0 {
		n.tell("WATCHDOG=1")
		n.stopAlive = watch.Every(n.aliveEvery, func() { n.tell("WATCHDOG=1") })
	}
}

// Stopping tells the manager that the process is stopping.
func (n *Notifier) Stopping() {
	if n != nil {
		n.tell("STOPPING=1")
	}
}

// Close ends the messages to the manager. It must not be called at the same time as another method.
func (n *Notifier) Close() {
	if n != nil {
		n.stopAlive()
		_ = n.conn.Close() // nothing is buffered
	}
}

func (n *Notifier) tell(message string) {
	err := n.conn.SetWriteDeadline(time.Now().Add(notifyTimeout))
	if err == nil {
		_, err = n.conn.Write([]byte(message))
	}
	if err != nil {
		n.log.Error("service manager not notified", "err", err)
	}
}
