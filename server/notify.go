package server

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// Notify tells the service manager, such as systemd, the state of the process, as sd_notify(3) describes. Without a service manager it
// does nothing. An error is only logged: the service manager stops or restarts a service that is not ready.
func Notify(state string, log *slog.Logger) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		log.Error("service manager not notified", "err", err)
	}
}
