// Package systemd tells a service manager, such as systemd, that the server is ready, alive or stopping, by the
// protocol of sd_notify(3): datagrams to the socket that NOTIFY_SOCKET names.
package systemd
