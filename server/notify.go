package server

import (
	"log/slog"

	"github.com/coreos/go-systemd/v22/daemon"

	"strikecache/server/watch"
)

// NotifyReady tells the service manager, such as systemd, that the process serves, with a status line for the operator. If the
// manager watches the process, NotifyReady tells the manager that the process is alive, twice in each interval, until stop is
// called. Without a manager nothing happens. Errors are logged: the manager decides what becomes of the service.
func NotifyReady(status string, log *slog.Logger) (stop func()) {
	notify(daemon.SdNotifyReady+"\nSTATUS="+status, log)
	limit, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		log.Error("no watchdog", "err", err)
	}
	if limit <= 1 {
		return func() {}
	}
	notify(daemon.SdNotifyWatchdog, log)
	return watch.Every(limit/2, func() { notify(daemon.SdNotifyWatchdog, log) })
}

// NotifyStopping tells the service manager that the process is stopping.
func NotifyStopping(log *slog.Logger) { notify(daemon.SdNotifyStopping, log) }

func notify(message string, log *slog.Logger) {
	if _, err := daemon.SdNotify(false, message); err != nil {
		log.Error("service manager not notified", "err", err)
	}
}
