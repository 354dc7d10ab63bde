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
	stop func() // ends the messages that the process is alive
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
	return &Notifier{conn: conn, log: log, stop: func() {}}
}

// Ready tells the manager that the process serves, with a status line for the operator. If the manager watches the process,
// Ready tells it from then on, until [Notifier.Close], that the process is alive.
func (n *Notifier) Ready(status string) {
	if n == nil {
		return
	}
	n.tell("READY=1\nSTATUS=" + status)
	every, err := watchdogInterval()
	if err != nil {
		n.log.Error("no watchdog", "err", err)
	}
	if every > 0 {
		n.tell("WATCHDOG=1")
		n.stop = watch.Every(every, func() { n.tell("WATCHDOG=1") })
	}
}

// watchdogInterval returns half of the time after which the manager kills a silent process, as sd_watchdog_enabled(3)
// advises, and 0 when the manager does not watch this process.
func watchdogInterval() (time.Duration, error) {
	usec, pid := os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID")
	if usec == "" || pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0, nil
	}
	n, err := strconv.ParseUint(usec, 10, 53)
	if err != nil || n < 2 {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q", usec)
	}
	return time.Duration(n) * time.Microsecond / 2, nil //nolint:gosec // 53 bits
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
		n.stop()
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
