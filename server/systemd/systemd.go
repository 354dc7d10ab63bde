package systemd

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

// Service is the manager's view of this process. A nil Service has no manager, and its methods do nothing.
type Service struct {
	conn *net.UnixConn
	log  *slog.Logger
	// every is how often the manager wants to hear that the process is alive, 0: not at all.
	every   time.Duration
	done    chan struct{}
	running sync.WaitGroup
}

// writeTimeout bounds a message to a manager that does not read its socket.
const writeTimeout = time.Second

// Open reads the environment that the manager set, and returns nil when there is no manager. A manager that cannot
// be reached is an error in the log alone: it decides by itself what to do with a service that it does not hear.
func Open(log *slog.Logger) *Service {
	name := os.Getenv("NOTIFY_SOCKET") // one that begins with @ is abstract, for Go as for systemd
	if name == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: name, Net: "unixgram"})
	if err != nil {
		log.Error("service manager not told", "err", err)
		return nil
	}
	s := &Service{conn: conn, log: log, done: make(chan struct{})}
	if s.every, err = watchdog(os.Getenv("WATCHDOG_USEC"), os.Getenv("WATCHDOG_PID"), os.Getpid()); err != nil {
		log.Error("no watchdog", "err", err)
	}
	return s
}

// watchdog returns half of the time after which the manager takes a silent process for dead, as sd_watchdog_enabled(3)
// advises, and 0 when it does not watch this process.
func watchdog(usec, pid string, self int) (time.Duration, error) {
	if usec == "" || pid != "" && pid != strconv.Itoa(self) {
		return 0, nil
	}
	n, err := strconv.ParseUint(usec, 10, 53)
	if err != nil || n < 2 {
		return 0, fmt.Errorf("WATCHDOG_USEC is %q", usec)
	}
	return time.Duration(n) * time.Microsecond / 2, nil //nolint:gosec // 53 bits
}

// Ready says that the process serves, with a line about it for the operator, and from then on that it is alive.
func (s *Service) Ready(status string) {
	if s == nil {
		return
	}
	s.tell("READY=1\nSTATUS=" + status)
	if s.every == 0 {
		return
	}
	s.running.Go(func() {
		tick := time.NewTicker(s.every)
		defer tick.Stop()
		for {
			s.tell("WATCHDOG=1")
			select {
			case <-tick.C:
			case <-s.done:
				return
			}
		}
	})
}

// Stopping says that the process ends. It goes on saying that it is alive until [Service.Close].
func (s *Service) Stopping() {
	if s != nil {
		s.tell("STOPPING=1")
	}
}

// Close ends the conversation.
func (s *Service) Close() {
	if s != nil {
		close(s.done)
		s.running.Wait()
		_ = s.conn.Close() // nothing is buffered
	}
}

func (s *Service) tell(message string) {
	err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	if err == nil {
		_, err = s.conn.Write([]byte(message))
	}
	if err != nil {
		s.log.Error("service manager not told", "err", err)
	}
}
