// Package deploy holds what runs and watches a server in production: a systemd unit, a Dockerfile, a compose file, alert
// rules for Prometheus, a Grafana dashboard, and how to operate them. Its tests compare these files with the server.
package deploy
