package server

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"
)

// NotifyReady tells the service manager, such as systemd, that the process serves, with a status line for the operator. Without a
// service manager it does nothing. An error is only logged: the service manager stops or restarts a service that is not ready.
func NotifyReady(status string, log *slog.Logger) {
	notify(daemon.SdNotifyReady+"\nSTATUS="+status, log)
}

// NotifyStopping tells the service manager that the process is stopping.
func NotifyStopping(log *slog.Logger) { notify(daemon.SdNotifyStopping, log) }

func notify(message string, log *slog.Logger) {
	if _, err := daemon.SdNotify(false, message); err != nil {
		log.Error("service manager not notified", "err", err)
	}
}
